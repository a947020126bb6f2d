package consumer_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/consumer"
)

// With 100 keys in a shard and 10 ms a record, 50 keys at a time go at least 40 times as fast as
// one, and the records of a key stay in order.
func TestRecordsInParallel(t *testing.T) {
	handled := func(parallel int) (n int) {
		bubble(t, 1, func(f *fleet) {
			for range 80 {
				f.stream.put("x", keys(100)...)
			}
			tally := newTally(f)
			var work each = func(ctx context.Context, r *runnel.Record) error {
				if err := doing(ctx, 10*time.Millisecond); err != nil {
					return err
				}
				tally.note(r)
				return nil
			}
			f.start("w1", work.asRecord(parallel))
			tally.awaitCount(failover, 1)
			<-time.After(time.Second)
			n, _ = tally.count()
		})
		return n
	}
	one, fifty := handled(1), handled(50)
	if one < 90 || fifty < 40*one {
		t.Errorf("in a second, one at a time handles %d records, and 50 handle %d", one, fifty)
	}
}

// A record that does not end holds the checkpoint before it, and lets 10,000 records pass it and no
// more. When the shard is handed over, all that was finished counts.
func TestRecordsAhead(t *testing.T) {
	bubble(t, 1, func(f *fleet) {
		f.stream.put("x", "before", "blocks")
		f.stream.put("x", keys(25_000)...)
		at, release := f.stream.position(0, 0), make(chan struct{})
		tally := newTally(f)
		var work each = func(_ context.Context, r *runnel.Record) error {
			if r.PartitionKey == "blocks" {
				<-release
			}
			tally.note(r)
			return nil
		}
		m := f.start("w1", work.asRecord(4))
		<-time.After(2 * failover)
		n, _ := tally.count()
		if ahead := n - 1; ahead < 9_000 || ahead > 10_000 {
			t.Errorf("%d records are ahead", ahead)
		}
		if got := f.leases()[0].Processed(); got != at {
			t.Errorf("the checkpoint is %s, want %s", got, at)
		}
		m.stop()
		<-time.After(time.Second)
		close(release)
		if err := <-m.err; err != nil {
			t.Fatal(err)
		}
		f.start("w2", work.asRecord(4))
		tally.awaitCount(failover, 25_002)
		tally.wantCount(25_002, 0)
	})
}

// A polite hand-over finishes the records before those that were begun, so that none comes again,
// also of a key that has many. It does not wait for a record that fails.
func TestRecordsAreHandedOver(t *testing.T) {
	for _, fails := range []bool{false, true} {
		bubble(t, 1, func(f *fleet) {
			f.stream.put("x", slices.Repeat([]string{"often"}, 20)...)
			f.stream.put("x", keys(200)...)
			tally := newTally(f)
			var work each = func(ctx context.Context, r *runnel.Record) error {
				if fails && r.PartitionKey == "often" {
					return errCut
				}
				if err := doing(ctx, 10*time.Millisecond); err != nil {
					return err
				}
				tally.note(r)
				return nil
			}
			m := f.start("w1", work.asRecord(4))
			tally.awaitCount(failover, 50)
			stopped := time.Now()
			f.mustStop(m)
			if took := time.Since(stopped); took > time.Second {
				t.Errorf("the stop took %s", took)
			}
			before, _ := tally.count()
			if fails {
				return
			}
			if before > 100 {
				t.Errorf("%d records were handled", before)
			}
			f.start("w2", work.asRecord(4))
			tally.awaitCount(failover, 220)
			tally.wantCount(220, 0)
		})
	}
}

// A handler may change its record.
func TestRecordIsChanged(t *testing.T) {
	bubble(t, 1, func(f *fleet) {
		var calls atomic.Int64
		var work each = func(_ context.Context, r *runnel.Record) error {
			calls.Add(1)
			*r = runnel.Record{PartitionKey: "changed"}
			return nil
		}
		f.start("w1", work.asRecord(2))
		for range 20 {
			f.stream.put("x", "a", "b", "a", "c")
			<-time.After(time.Second)
		}
		<-time.After(failover)
		if n, end := calls.Load(), f.leases()[0].Checkpoint; n != 80 || end != f.stream.position(0, 79) {
			t.Errorf("%d calls, and the checkpoint is %s", n, end)
		}
	})
}

// The checkpoint follows the records also while the next page waits for room.
func TestRecordsAreCheckpointedInTime(t *testing.T) {
	bubble(t, 1, func(f *fleet) {
		for range 250 {
			f.stream.put("x", keys(100)...)
		}
		tally := newTally(f)
		var work each = func(ctx context.Context, r *runnel.Record) error {
			if err := doing(ctx, 10*time.Millisecond); err != nil {
				return err
			}
			tally.note(r)
			return nil
		}
		m := f.start("w1", work.asRecord(1))
		tally.awaitCount(failover, 1)
		for range 15 {
			before, _ := tally.count()
			<-time.After(failover)
			got := f.leases()[0].Processed()
			if want := f.stream.position(0, before-1); got.Less(want) {
				t.Fatalf("ten seconds after %d records the checkpoint is %s, want %s or more",
					before, got, want)
			}
		}
		before, _ := tally.count()
		m.kill()
		<-m.err
		f.start("w2", work.asRecord(50))
		tally.awaitCount(10*failover, 25_000)
		if _, again := tally.count(); again > 600 || before > 20_000 {
			t.Errorf("%d records came again", again)
		}
	})
}

// A record out of attempts stops the shard. What was finished before it counts, also when the next
// page waits for room at that time.
func TestRecordStopsAFullShard(t *testing.T) {
	bubble(t, 1, func(f *fleet) {
		f.stream.put("x", keys(5_000)...)
		f.stream.put("x", "poison")
		f.stream.put("x", keys(15_000)...)
		tally := newTally(f)
		var work each = func(_ context.Context, r *runnel.Record) error {
			if r.PartitionKey == "poison" {
				return errCut
			}
			tally.note(r)
			return nil
		}
		f.start("w1", work.asRecord(4), func(c *consumer.Config) { c.OnError.Attempts = 6 })
		f.await(3*failover, "the shard stops", func() bool {
			return len(f.happened(consumer.EventShardStopped)) > 0
		})
		<-time.After(failover)
		if got, want := f.leases()[0].Processed(), f.stream.position(0, 4_999); got != want {
			t.Errorf("the checkpoint is %s, want %s", got, want)
		}
		e := f.happened(consumer.EventShardStopped)[0]
		if e.Position != f.stream.position(0, 5_000) {
			t.Errorf("it stopped at %s", e.Position)
		}
	})
}

// A shard ends when its last record is finished, and not before.
func TestRecordsHoldTheShardsEnd(t *testing.T) {
	bubble(t, 1, func(f *fleet) {
		f.stream.put("x", "blocks")
		f.stream.put("x", keys(20)...)
		f.stream.split(0)
		f.stream.put("x", keys(20)...)
		release := make(chan struct{})
		tally := newTally(f)
		var work each = func(_ context.Context, r *runnel.Record) error {
			if r.PartitionKey == "blocks" {
				<-release
			}
			tally.note(r)
			return nil
		}
		f.start("w1", work.asRecord(4))
		<-time.After(3 * failover)
		tally.wantCount(20, 0)
		close(release)
		tally.awaitCount(failover, 41)
		tally.wantCount(41, 0)
	})
}
