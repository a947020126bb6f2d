package consumer_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/consumer"
	"github.com/runnel-stream/runnel/lease"
)

// fivePerSecond refuses reads as AWS does: more than five a second of a shard.
func (f *fleet) fivePerSecond() {
	reads := map[runnel.ShardID][]time.Time{}
	mu := make(turn, 1)
	f.stream.fault = func(op string, shard runnel.ShardID) error {
		if op != "GetRecords" {
			return nil
		}
		mu.Lock()
		defer mu.Unlock()
		recent := reads[shard]
		if n := len(recent); n >= 5 && time.Since(recent[n-5]) < time.Second {
			return &types.ProvisionedThroughputExceededException{}
		}
		reads[shard] = append(recent, time.Now())
		return nil
	}
}

// Reading again keeps to the stream's limits, reports its progress, and ends when the worker is
// stopped. Its successor begins anew, and drops the doubles.
func TestRebuildThatTakesLong(t *testing.T) {
	bubble(t, 1, func(f *fleet) {
		slow := func(c *consumer.Config) { c.MaxRecords = 1 }
		var j journal
		m := f.start("w1", j.into)
		f.stream.put(unit(1, 1, "a", "1"), "a")
		f.stream.put("x", keys(100)...)
		f.await(failover, "101 records", func() bool {
			j.mu.Lock()
			defer j.mu.Unlock()
			return len(j.records) == 101
		})
		f.mustStop(m)
		at := f.leases()[0].Processed()
		f.forget()
		f.fivePerSecond()
		f.stream.put(unit(1, 1, "a", "1"), "a")
		m = f.start("w2", j.into, slow)
		<-time.After(12 * time.Second)
		progress := f.happened(consumer.EventRebuilding)
		if n := len(progress); n != 2 || progress[0].Records >= progress[1].Records ||
			progress[1].Records > 60 || progress[1].Position != at {
			t.Errorf("progress %+v", progress)
		}
		began := time.Now()
		f.mustStop(m)
		if took := time.Since(began); took > 100*time.Millisecond {
			t.Errorf("stopped after %s", took)
		}
		if l := f.leases()[0]; l.Owner != "" || l.Processed() != at {
			t.Errorf("handed over as %+v", l)
		}
		j.records = nil
		f.stream.put(unit(1, 1, "a", "1"), "a")
		f.stream.put("y", "a")
		f.start("w3", j.into, slow)
		f.await(time.Minute, "what is new", func() bool { return j.text() == "y" })
		if rebuilt := f.happened(consumer.EventRebuilt); len(rebuilt) != 1 || rebuilt[0].Records != 101 {
			t.Errorf("rebuilt %+v", rebuilt)
		}
	})
}

// The server's clock steps forward between a unit and its retry, once or several times, and in
// between a handler's worker is replaced: its window reaches back to the unit, through
// ancestors too.
func TestRebuildOverClockSteps(t *testing.T) {
	for _, steps := range []int{1, 4} {
		for _, reshard := range []bool{false, true} {
			bubble(t, 1, func(f *fleet) {
				var j journal
				m := f.start("w1", j.into)
				f.stream.put(unit(1, 1, "a", "1"), "a")
				want := "1"
				for range steps {
					<-time.After(time.Minute)
					f.stream.mu.Lock()
					f.stream.ahead += 7 * time.Hour
					f.stream.mu.Unlock()
					f.stream.put("x", "a")
					want += " x"
					f.expect(&j, want)
					if reshard {
						f.stream.split(0)
						f.stream.merge(0)
					}
				}
				f.stream.put("y", "a")
				f.expect(&j, want+" y")
				f.mustStop(m)
				f.start("w2", j.into)
				f.stream.put(unit(1, 1, "a", "1"), "a")
				f.stream.put("end", "a")
				f.expect(&j, want+" y end")
			})
		}
	}
}

// forget removes the filter states from all rows, as an older version that rewrites a row leaves
// it.
func (f *fleet) forget() {
	for _, l := range f.leases() {
		f.edit(l.Key, "REMOVE #a", "runnelState", nil)
	}
}

// A busy shard is read again from 4H before the first unit on, and no further: a retry that comes
// nearly 3H after its unit is a double, and the cost is that of one window.
func TestRebuildReadsOneWindow(t *testing.T) {
	bubble(t, 1, func(f *fleet) {
		var j journal
		m := f.start("w1", j.into)
		const every = 50 * time.Second
		want := ""
		for n := range 300 { // more than four hours
			if n == 283 {
				f.stream.put(unit(1, 1, "a", "1"), "a")
				want += "1 "
			}
			f.stream.put("t", "a")
			want += "t "
			<-time.After(every)
		}
		f.expect(&j, strings.TrimSpace(want))
		f.mustStop(m)
		f.forget()
		iterators := f.countIterators()
		f.start("w2", j.into)
		f.stream.put(unit(1, 1, "a", "1"), "a") // 14 minutes after its first copy
		f.stream.put("end", "a")
		f.expect(&j, want+"end")
		rebuilt := f.happened(consumer.EventRebuilt)
		if n := len(rebuilt); n != 1 || rebuilt[0].Records < 24 || rebuilt[0].Records > 28 {
			t.Errorf("rebuilt %+v, want 4.3H of records", rebuilt)
		}
		// The position's arrival, the window, and the reading itself.
		if n := iterators()[f.stream.shards[0].id]; n != 3 {
			t.Errorf("%d iterators", n)
		}
	})
}

// A shard with a few records a day is read again until 4H are counted: twenty records or so, and
// not all records.
func TestRebuildOfASparseShard(t *testing.T) {
	bubble(t, 1, func(f *fleet) {
		var j journal
		m := f.start("w1", j.into)
		for range 200 {
			f.stream.put("t", "a")
			<-time.After(10 * time.Minute)
		}
		f.await(failover, "200 records", func() bool {
			j.mu.Lock()
			defer j.mu.Unlock()
			return len(j.records) == 200
		})
		f.mustStop(m)
		f.forget()
		f.start("w2", j.into)
		<-time.After(failover)
		if n := len(f.happened(consumer.EventRebuilt)); n != 0 {
			t.Errorf("read again %d times before the first unit", n)
		}
		f.stream.put(unit(1, 1, "a", "1"), "a")
		f.await(failover, "the window", func() bool { return len(f.happened(consumer.EventRebuilt)) == 1 })
		if rebuilt := f.happened(consumer.EventRebuilt); rebuilt[0].Records < 21 || rebuilt[0].Records > 100 {
			t.Errorf("rebuilt %+v", rebuilt)
		}
	})
}

// A server that always reports the tip is believed if no record comes.
func TestRebuildWithoutBehind(t *testing.T) {
	bubble(t, 1, func(f *fleet) {
		f.stream.noBehind = true
		var j journal
		slow := func(c *consumer.Config) { c.MaxRecords = 1 }
		m := f.start("w1", j.into, slow)
		f.stream.put("x", "a", "b")
		f.stream.put(unit(1, 1, "a", "1"), "a")
		f.stream.put(unit(2, 1, "b", "2"), "b")
		f.expect(&j, "x x 1 2")
		f.mustStop(m)
		f.stream.split(0)
		f.start("w2", j.into, slow)
		f.stream.put(unit(2, 1, "b", "2"), "b")
		f.stream.put(unit(1, 1, "a", "1"), "a")
		f.stream.put("y", "a")
		f.expect(&j, "x x 1 2 y")
	})
}

// A new application that begins with the oldest record reads nothing twice.
func TestNoRebuildAtTheOldest(t *testing.T) {
	bubble(t, 2, func(f *fleet) {
		var reads atomic.Int32
		f.stream.fault = func(op string, _ runnel.ShardID) error {
			if op == "GetRecords" {
				reads.Add(1)
			}
			return nil
		}
		f.stream.put(unit(1, 1, "a", "1"), "a")
		f.start("w1", once)
		if err := <-f.workers["w1"].err; err != nil || reads.Load() != 2 {
			t.Errorf("%d reads of 2 shards, %v", reads.Load(), err)
		}
	})
}

// A row that another program made at LATEST contains no time. The records before now are read
// again, and no more, though records keep coming.
func TestRebuildAtLatestWithAProducer(t *testing.T) {
	bubble(t, 1, func(f *fleet) {
		f.stream.put(unit(1, 1, "a", "1"), "a")
		<-time.After(time.Minute)
		table := f.leaseTable()
		if err := table.Ensure(f.Context()); err != nil {
			t.Fatal(err)
		}
		_, _, err := table.Create(f.Context(), lease.Lease{
			Key:        f.stream.shards[0].id,
			Checkpoint: runnel.Position{Sequence: runnel.Latest},
		})
		if err != nil {
			t.Fatal(err)
		}
		f.stream.fault = func(op string, _ runnel.ShardID) error {
			if op == "GetRecords" { // never at the tip
				f.stream.put("x", "a")
			}
			return nil
		}
		var j journal
		f.start("w1", j.into)
		f.await(time.Minute, "a record", func() bool { return j.text() != "" })
		f.stream.put(unit(1, 1, "a", "1"), "a")
		f.stream.put("end", "a")
		f.await(time.Minute, "the end", func() bool { return strings.Contains(j.text(), "end") })
		if strings.Contains(j.text(), "1") {
			t.Error("a double was delivered")
		}
	})
}

// A row that another program made lacks the shard's hash keys: they come from the stream.
func TestVoidWithoutARangeInTheRow(t *testing.T) {
	bubble(t, 2, func(f *fleet) {
		table := f.leaseTable()
		if err := table.Ensure(f.Context()); err != nil {
			t.Fatal(err)
		}
		for _, s := range f.stream.shards {
			_, _, err := table.Create(f.Context(), lease.Lease{
				Key: s.id, Checkpoint: runnel.Position{Sequence: runnel.TrimHorizon},
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		f.void()
		var j journal
		f.start("w1", j.into)
		f.expect(&j, "before behind")
	})
}

// The pages of one read follow each other at once, however long the wait between two reads has
// become: they cost the stream nothing.
func TestPagesOfOneReadAreNotPaced(t *testing.T) {
	bubble(t, 1, func(f *fleet) {
		var refused int
		f.stream.fault = func(op string, _ runnel.ShardID) error {
			if op == "GetRecords" && refused < 8 {
				refused++
				return &types.ProvisionedThroughputExceededException{}
			}
			return nil
		}
		for i := range 40 {
			f.stream.put(unit(1, uint64(i+1), "a", strings.Fields(strings.Repeat("x ", 40))...), "a")
		}
		f.start("w1", func(c *consumer.Config) {
			c.MaxRecords = 40
			c.Handler = func(context.Context, *consumer.Batch) error { return nil }
		})
		f.await(time.Minute, "40 pages", func() bool { return len(f.happened(consumer.EventDelivered)) == 40 })
		pages := f.happened(consumer.EventDelivered)
		if took := pages[39].Time.Sub(pages[0].Time); took > 100*time.Millisecond {
			t.Errorf("40 pages of one read took %s", took)
		}
	})
}
