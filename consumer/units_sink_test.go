package consumer_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/aggregate"
	"github.com/runnel-stream/runnel/consumer"
)

// A sink that gets only doubles gets the position of their end as well, and commits it by age.
func TestSinkPassesDoubles(t *testing.T) {
	bubble(t, 1, func(f *fleet) {
		s := newChain(calm(), 1)
		f.start("w1", intoSink(s))
		f.stream.put(unit(1, 1, "a", "1", "2"), "key")
		s.await(f, "1 2")
		for range 3 {
			f.stream.put(unit(1, 1, "a", "1", "2"), "key")
		}
		at := f.stream.last(0, 1)
		f.await(failover, "a commit behind the doubles", func() bool {
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.links[f.stream.shards[0].id].end == at
		})
		s.await(f, "1 2")
	})
}

// The sink's state counts, not the stream: a child begins with the state at its parent's end,
// though the parent is gone.
func TestSinkStateIsInherited(t *testing.T) {
	bubble(t, 1, func(f *fleet) {
		s := newChain(calm(), 1)
		m := f.start("w1", intoSink(s))
		f.stream.put(unit(1, 1, "a", "1"), "a")
		s.await(f, "1")
		f.stream.split(0)
		f.await(failover, "the children", func() bool { return f.loads()["w1"] == 2 })
		f.mustStop(m)
		f.stream.mu.Lock()
		f.stream.shards[0].unlisted = true
		f.stream.mu.Unlock()
		f.start("w2", intoSink(s))
		f.stream.put(unit(1, 1, "a", "1"), "a")
		f.stream.put(unit(1, 2, "a", "2"), "a")
		s.await(f, "1 2")
		if n := len(f.happened(consumer.EventRebuilt)); n != 0 {
			t.Errorf("read again %d times although the sink keeps the state", n)
		}
	})
}

// A sink without any units costs its shards' children no reads: the state says that there were no
// units.
func TestSinkWithoutUnits(t *testing.T) {
	bubble(t, 1, func(f *fleet) {
		s := newChain(calm(), 1)
		f.start("w1", intoSink(s))
		f.stream.put("1", "a")
		s.await(f, "1")
		l := s.links[f.stream.shards[0].id]
		if l.state != nil {
			t.Errorf("a state of %d bytes although there is nothing to know", len(l.state))
		}
		f.stream.split(0)
		f.stream.split(0) // one of the children is never written to
		f.stream.put("2", "a")
		s.await(f, "1 2")
		if n := len(f.happened(consumer.EventRebuilt)); n != 0 || l.state == nil {
			t.Errorf("read again %d times; the end's state has %d bytes", n, len(l.state))
		}
		if l := s.links[s.effects(f)[1].ShardID]; l.state != nil {
			t.Errorf("a child's state of %d bytes", len(l.state))
		}
	})
}

// The sink is new, so a child's parent has not ended in it. The parent's end is read again.
func TestSinkThatIsNew(t *testing.T) {
	bubble(t, 1, func(f *fleet) {
		m := f.start("w1", (&journal{}).into)
		f.stream.put(unit(1, 1, "a", "1"), "a")
		f.stream.split(0)
		f.await(failover, "the children", func() bool { return f.loads()["w1"] == 2 })
		f.mustStop(m)
		s := newChain(calm(), 1)
		m = f.start("w2", intoSink(s))
		f.stream.put(unit(1, 1, "a", "1"), "a")
		f.stream.put(unit(1, 2, "a", "2"), "a")
		s.await(f, "2")
		f.mustStop(m)
		// The commit's state contains the records that were read again: they are not read twice.
		f.start("w3", intoSink(s))
		f.stream.put(unit(1, 1, "a", "1"), "a")
		f.stream.put(unit(1, 3, "a", "3"), "a")
		s.await(f, "2 3")
		shard := s.effects(f)[0].ShardID
		for _, e := range f.happened(consumer.EventRebuilt) {
			if e.Worker == "w3" && e.ShardID == shard {
				t.Errorf("read again: %+v", e)
			}
		}
	})
}

// A writer that finds another writer's commit goes on with the state of that commit, not with its
// own: it was ahead for a while, and the records that it read beyond the commit come again.
func TestMovedAdoptsTheState(t *testing.T) {
	bubble(t, 1, func(f *fleet) {
		s := newChain(calm(), 1000)
		f.start("w1", intoSink(s))
		f.stream.put(unit(1, 1, "a", "1"), "a")
		first := f.stream.last(0, 0)
		<-time.After(time.Second)
		f.stream.put(unit(1, 2, "a", "2"), "a")
		f.stream.put(unit(1, 3, "a", "3"), "a")
		<-time.After(time.Second)
		// Another writer has committed only the first unit.
		var known aggregate.Filter
		u := aggregate.Unit{Producer: aggregate.ProducerID{1}, Number: 1, Low: 1}
		known.Admit(u, aggregate.LaneOf("a", ""), time.Now())
		state, _ := known.MarshalBinary()
		s.mu.Lock()
		l := s.links[f.stream.shards[0].id]
		l.effects = []runnel.Record{{Data: []byte("1"), Position: first}}
		l.end, l.state = first, state
		s.mu.Unlock()
		f.await(failover, "the commit to fail", func() bool {
			return len(f.happened(consumer.EventMoved)) > 0
		})
		f.stream.put(unit(1, 1, "a", "1"), "a")
		s.await(f, "1 2 3")
	})
}

// A sink's state that cannot be read stops the shard, with an error that says so.
func TestSinkStateUnreadable(t *testing.T) {
	bubble(t, 1, func(f *fleet) {
		s := newChain(calm(), 1)
		m := f.start("w1", intoSink(s))
		f.stream.put(unit(1, 1, "a", "1"), "a")
		s.await(f, "1")
		f.mustStop(m)
		l := s.links[f.stream.shards[0].id]
		good := l.state
		l.state = []byte{9, 9}
		f.start("w2", intoSink(s))
		f.stream.put(unit(1, 2, "a", "2"), "a")
		<-time.After(failover)
		failed := f.happened(consumer.EventFailed)
		if len(failed) == 0 || !errors.Is(failed[0].Err, aggregate.ErrStateSyntax) ||
			!strings.Contains(failed[0].Err.Error(), string(f.stream.shards[0].id)) {
			t.Fatalf("failed: %+v", failed)
		}
		s.mu.Lock()
		l.state = good
		s.mu.Unlock()
		s.await(f, "1 2")
	})
}

// A sink that begins at a time knows the units before it, also in a shard without parents.
func TestSinkFromTime(t *testing.T) {
	bubble(t, 1, func(f *fleet) {
		f.stream.put(unit(1, 1, "a", "1"), "a")
		<-time.After(time.Minute)
		s := newChain(calm(), 1)
		now := time.Now()
		f.start("w1", intoSink(s), func(c *consumer.Config) { c.From = runnel.FromTime(now) })
		f.stream.put(unit(1, 1, "a", "1"), "a")
		f.stream.put(unit(1, 2, "a", "2"), "a")
		s.await(f, "2")
	})
}
