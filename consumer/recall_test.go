package consumer_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/aggregate"
	"github.com/runnel-stream/runnel/consumer"
	"github.com/runnel-stream/runnel/internal/seam"
	"github.com/runnel-stream/runnel/lease"
)

// countIterators counts, from now on, how often a reader of each shard is begun.
func (f *fleet) countIterators() func() map[runnel.ShardID]int {
	counts, mu := map[runnel.ShardID]int{}, make(turn, 1)
	f.stream.fault = func(op string, shard runnel.ShardID) error {
		mu.Lock()
		defer mu.Unlock()
		if op == "GetShardIterator" {
			counts[shard]++
		}
		return nil
	}
	return func() map[runnel.ShardID]int {
		mu.Lock()
		defer mu.Unlock()
		return counts
	}
}

// readAgain fails the test unless these shards' readers, and no others, have read again.
func (f *fleet) readAgain(want ...runnel.ShardID) {
	f.Helper()
	var got []runnel.ShardID
	for _, e := range append(f.happened(consumer.EventRebuilding), f.happened(consumer.EventRebuilt)...) {
		got = append(got, e.ShardID)
	}
	if !slices.Equal(got, want) {
		f.Errorf("read again for %v, want %v", got, want)
	}
}

// The children of shards that the worker itself has ended know the units of their parents, to the
// last record, and read no record again: not even if the application began inside a parent.
func TestNoRebuildAfterTheOwnEnd(t *testing.T) {
	for _, atEndOnly := range []bool{true, false} {
		for _, from := range []runnel.From{runnel.FromOldest(), runnel.FromLatest()} {
			t.Run(fmt.Sprintf("%s, children at the end only %v", from, atEndOnly),
				func(t *testing.T) {
					bubble(t, 1, func(f *fleet) { ownEnd(f, from, atEndOnly) })
				})
		}
	}
}

func ownEnd(f *fleet, from runnel.From, atEndOnly bool) {
	f.stream.atEndOnly = atEndOnly
	iterators := f.countIterators()
	a, b := f.stream.keysOf(0, 2)[0], f.stream.keysOf(0, 2)[1]
	var j journal
	change := func(c *consumer.Config) { c.MaxRecords, c.From = 2, from }
	f.start("w1", j.into, change)
	<-time.After(time.Second)
	f.stream.put(unit(1, 1, a, "a1"), a)
	f.stream.put("x", a)
	// The last page before the end, read at once with it if the server says so.
	f.stream.put(unit(1, 2, b, "b2"), b)
	f.stream.put(unit(2, 1, a, "a3"), a)
	f.stream.split(0)
	<-time.After(aggregate.H / 2)
	twice := func() {
		f.stream.put(unit(1, 1, a, "a1"), a)
		f.stream.put(unit(1, 2, b, "b2"), b)
		f.stream.put(unit(2, 1, a, "a3"), a)
	}
	twice()
	f.expect(&j, "a1 x b2 a3")
	f.stream.merge(0)
	<-time.After(aggregate.H / 2)
	twice()
	f.stream.split(0)
	twice()
	f.stream.put(unit(1, 3, a, "a4"), a)
	f.expect(&j, "a1 x b2 a3 a4")
	f.readAgain()
	if doubles, _ := f.dropped(); doubles != 9 {
		f.Errorf("%d doubles dropped, want 9", doubles)
	}
	if got := iterators(); len(got) != 6 {
		f.Errorf("%d shards were read, want 6", len(got))
	}
	for shard, n := range iterators() {
		if first := f.stream.shards[0].id; n != 1 && (shard != first || from == runnel.FromOldest()) {
			f.Errorf("the reading of %s was begun %d times", shard, n)
		}
	}
}

// Each child has its own copy of the parent's state. A low-water mark that one of them meets has no
// effect on the units that the other one has not read yet.
func TestChildrenShareNothing(t *testing.T) {
	bubble(t, 1, func(f *fleet) {
		var j journal
		f.start("w1", j.into)
		f.stream.put(unit(1, 1, "p", "p"), "p")
		f.expect(&j, "p")
		f.stream.split(0)
		a, b := f.stream.keysOf(0, 1)[0], f.stream.keysOf(1, 1)[0]
		late := f.stream.put(unit(1, 2, b, "b"), b)[0]
		f.stream.put(unit(1, 3, a, "a"), a)
		until := time.Now().Add(time.Minute)
		f.stream.fault = func(op string, shard runnel.ShardID) error {
			if op == "GetRecords" && shard == late && time.Now().Before(until) {
				return &types.ProvisionedThroughputExceededException{}
			}
			return nil
		}
		f.expect(&j, "p a")
		<-time.After(time.Minute)
		f.expect(&j, "p a b")
		f.readAgain()
	})
}

// If another worker has ended a parent, the parent's row has the state there. Without it, the
// parent's records have to be read.
func TestRebuildOfAnothersEnd(t *testing.T) {
	for _, forgotten := range []bool{false, true} {
		bubble(t, 2, func(f *fleet) { anothersEnd(f, forgotten) })
	}
}

func anothersEnd(f *fleet, forgotten bool) {
	t := f.T
	var j journal
	f.start("w1", j.into)
	f.await(failover, "both shards", func() bool { return f.loads()["w1"] == 2 })
	f.start("w2", j.into)
	f.await(4*failover, "shares", func() bool { return slices.Equal(f.spread(), []int{1, 1}) })
	for _, m := range f.workers {
		m.link.mu.Lock()
		m.link.after = func(_ context.Context, op string) error {
			if forgotten && op == "UpdateItem" {
				f.forget()
			}
			return nil
		}
		m.link.mu.Unlock()
	}
	a, b := f.stream.keysOf(0, 1)[0], f.stream.keysOf(1, 1)[0]
	f.stream.put(unit(1, 1, a, "a"), a)
	<-time.After(time.Second)
	f.stream.put(unit(2, 1, b, "b"), b)
	f.expect(&j, "a b")
	f.readAgain()
	f.stream.merge(0)
	f.stream.put(unit(1, 1, a, "a"), a)
	f.stream.put(unit(2, 1, b, "b"), b)
	f.stream.put("end", a)
	f.expect(&j, "a b end")
	if merged := f.stream.shards[2].id; forgotten {
		f.readAgain(merged)
	} else {
		f.readAgain()
	}
	enders := map[string]bool{}
	for _, e := range f.happened(consumer.EventShardEnded) {
		enders[e.Worker] = true
	}
	if len(enders) != 2 {
		t.Errorf("the parents were ended by %v", enders)
	}
}

// A lease is lost and regained in the middle of a child. The parent's end, which is still kept for
// the other child, is not the state at that position.
func TestRebuildAfterALostLease(t *testing.T) {
	bubble(t, 1, func(f *fleet) {
		var j journal
		single := func(c *consumer.Config) { c.MaxLeases = 1 }
		m := f.start("w1", j.into, single)
		f.stream.put(unit(1, 1, "p", "p"), "p")
		f.expect(&j, "p")
		f.start("w2", j.into, single)
		f.stream.split(0)
		f.await(failover, "shares", func() bool {
			return f.loads()["w1"] == 1 && f.loads()["w2"] == 1
		})
		var shard runnel.ShardID
		for _, l := range f.leases() {
			if l.Owner == "w1" {
				shard = l.Key
			}
		}
		a := f.stream.keysOf(0, 1)[0]
		if shard != f.stream.shards[1].id {
			a = f.stream.keysOf(1, 1)[0]
		}
		f.stream.put(unit(1, 2, a, "a"), a)
		f.expect(&j, "p a")
		<-time.After(failover * 6 / 10) // a checkpoint
		before := len(f.happened(consumer.EventRebuilt))
		mend := m.link.cut()
		f.await(4*failover, "the loss", func() bool {
			return len(f.happened(consumer.EventLeaseLost)) == 1
		})
		f.forget()
		mend()
		f.stream.put(unit(1, 2, a, "a"), a)
		f.stream.put("end", a)
		f.await(4*failover, "the way back", func() bool {
			return len(f.happened(consumer.EventRebuilt)) > before
		})
		f.expect(&j, "p a end")
		if e := f.happened(consumer.EventRebuilt)[before]; e.Worker != "w1" || e.ShardID != shard {
			t.Errorf("read again: %+v", e)
		}
	})
}

// The end of a parent is there as soon as the table says that it has ended, even if the parent's
// own reader may not know yet that the table says so.
func TestEndIsLeftBeforeTheRowSaysSo(t *testing.T) {
	bubble(t, 2, func(f *fleet) {
		var j journal
		m := f.start("w1", j.into)
		for i := range 2 {
			key := f.stream.keysOf(i, 1)[0]
			f.stream.put(unit(1, uint64(i+1), key, fmt.Sprint(i)), key)
			<-time.After(time.Second)
		}
		delayed := make(chan struct{}, 1)
		m.link.mu.Lock()
		m.link.after = func(context.Context, string) error {
			ended := slices.ContainsFunc(f.leases(), lease.Lease.Ended)
			if ended && len(delayed) == 0 {
				delayed <- struct{}{}
				<-time.After(failover * 4 / 10)
			}
			return nil
		}
		m.link.mu.Unlock()
		f.stream.merge(0)
		f.expect(&j, "0 1")
		if n := len(f.happened(consumer.EventShardStarted)); n != 3 || len(delayed) != 1 {
			t.Fatalf("%d shards begun, %d answers late", n, len(delayed))
		}
		if n := len(f.happened(consumer.EventShardEnded)); n != 1 {
			t.Errorf("%d parents have been told of their ends: nothing to see", n)
		}
		f.readAgain()
	})
}

// The application begins inside a child. The child's parent has a lease too, since the server does
// not say which shards were open then. The state there is more than that at the parent's end.
func TestRebuildWhereTheApplicationBegins(t *testing.T) {
	bubble(t, 1, func(f *fleet) {
		f.stream.noFilter = true
		f.stream.put(unit(1, 1, "a", "1"), "a")
		f.stream.split(0)
		f.stream.put(unit(1, 2, "a", "2"), "a")
		<-time.After(time.Minute)
		var j journal
		f.start("w1", j.into, func(c *consumer.Config) { c.From = runnel.FromTime(time.Now()) })
		f.stream.put(unit(1, 1, "a", "1"), "a")
		f.stream.put(unit(1, 2, "a", "2"), "a")
		f.stream.put("end", "a")
		f.expect(&j, "end")
		if n := len(f.happened(consumer.EventShardEnded)); n != 1 {
			t.Errorf("%d shards ended, want the parent", n)
		}
	})
}

// A child forgets units at the same time as its parents would.
func TestHorizonOfChildren(t *testing.T) {
	for _, into := range []string{"handler", "sink"} {
		t.Run(into, func(t *testing.T) {
			seam.SetH(t, time.Minute)
			bubble(t, 1, func(f *fleet) {
				var j journal
				s := newChain(calm(), 1)
				f.start("w1", func(c *consumer.Config) {
					if j.into(c); into == "sink" {
						intoSink(s)(c)
					}
				})
				f.stream.put(unit(1, 1, "a", "1"), "a")
				<-time.After(time.Second)
				f.stream.split(0)
				for range 2 { // a double, and one that is forgotten
					f.stream.put(unit(1, 1, "a", "1"), "a")
					for range 36 { // six minutes of the filter's clock
						<-time.After(10 * time.Second)
						f.stream.put("t", "a")
					}
				}
				f.readAgain()
				ticks := strings.Repeat(" t", 36)
				if want := "1" + ticks + " 1" + ticks; into == "sink" {
					s.await(f, want)
				} else {
					f.expect(&j, want)
				}
			})
		})
	}
}
