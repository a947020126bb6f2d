package consumer_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/aws/smithy-go"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/consumer"
	"github.com/runnel-stream/runnel/internal/retry"
)

// flow puts one record into every shard each 50 ms, and measures how old records are when they are
// handled for the first time: the silence of their shards.
type flow struct {
	*fleet
	mu     sync.Mutex
	oldest map[runnel.ShardID]time.Duration
	stop   func()
}

func newFlow(f *fleet) *flow {
	w := &flow{fleet: f, oldest: map[runnel.ShardID]time.Duration{}}
	ctx, cancel := context.WithCancel(f.Context())
	w.stop = cancel
	f.group.Go(func() {
		for i := 0; retry.Wait(ctx, 50*time.Millisecond) == nil; i++ {
			for n := range f.stream.open() {
				f.stream.put(fmt.Sprint(i), f.stream.keysOf(n, 1)[0])
			}
		}
	})
	return w
}

func (w *flow) into(c *consumer.Config) {
	c.Handler = func(_ context.Context, b *consumer.Batch) error {
		w.record(b.Records)
		w.note(b)
		return nil
	}
}

// note measures the age of a batch.
func (w *flow) note(b *consumer.Batch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	age := time.Since(b.Records[0].ArrivalTime)
	w.oldest[b.ShardID] = max(w.oldest[b.ShardID], age)
}

// silence returns the longest silence of a shard since the last call.
func (w *flow) silence() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	var longest time.Duration
	for _, age := range w.oldest {
		longest = max(longest, age)
	}
	clear(w.oldest)
	return longest
}

// settle waits until n workers have even shares.
func (w *flow) settle(limit time.Duration, n int) {
	w.Helper()
	w.await(limit, fmt.Sprintf("%d even shares", n), func() bool {
		loads := w.spread()
		_, free := w.loads()[""]
		return len(loads) == n && !free && loads[n-1]-loads[0] <= 1
	})
}

// quiet fails if a shard was silent for longer than limit.
func (w *flow) quiet(limit time.Duration, when string) {
	w.Helper()
	if longest := w.silence(); longest > limit {
		w.Errorf("%s, a shard was silent for %s, want %s at most", when, longest, limit)
	}
}

// A fleet grows from two workers to four and shrinks again. No record is handled twice, no shard is
// silent for long, and each change of the fleet moves a lease at most once.
func TestPoliteFleet(t *testing.T) {
	for seed := range 2 * soak() {
		bubble(t, 12, func(f *fleet) { politeFleet(f, time.Duration(seed)*517*time.Millisecond) })
	}
}

func politeFleet(f *fleet, offset time.Duration) {
	w := newFlow(f)
	<-time.After(offset)
	f.start("w1", w.into)
	f.start("w2", w.into)
	w.settle(8*time.Second, 2)
	<-time.After(failover)
	w.silence()
	for n := 3; n <= 4; n++ {
		moved := f.moves()
		f.start(fmt.Sprintf("w%d", n), w.into)
		w.settle(8*time.Second, n)
		<-time.After(3 * failover)
		w.quiet(2*time.Second, "when a worker came")
		if n := f.moves() - moved; n != 12/len(f.workers) {
			f.Errorf("%d leases moved to the new worker, want %d", n, 12/len(f.workers))
		}
	}
	for n := 4; n >= 3; n-- {
		moved := f.moves()
		m := f.workers[fmt.Sprintf("w%d", n)]
		m.stop()
		f.await(2*time.Second, "the leaver's shards elsewhere", func() bool {
			return len(f.spread()) == n-1
		})
		if err := <-m.err; err != nil {
			f.Error(err)
		}
		w.settle(time.Second, n-1)
		<-time.After(3 * failover)
		w.quiet(2*time.Second, "when a worker left")
		if got := f.moves() - moved; got != 12/n {
			f.Errorf("%d leases of the leaver moved, want %d", got, 12/n)
		}
	}
	w.stop()
	if _, again := f.delivered(); again != 0 {
		f.Errorf("%d records were handled again", again)
	}
	for _, kind := range []consumer.EventKind{
		consumer.EventLeaseExpired, consumer.EventLeaseStolen, consumer.EventLeaseLost,
	} {
		if events := f.happened(kind); len(events) > 0 {
			f.Errorf("%s: %+v", kind, events)
		}
	}
}

// moves counts the leases that were passed.
func (f *fleet) moves() int { return len(f.happened(consumer.EventLeasePassed)) }

// A worker of three dies. Its shards flow again within one and a half failover times, though the
// others have their shares, and afterwards the shares are even.
func TestDeadWorkersShards(t *testing.T) {
	for seed := range 3 * soak() {
		bubble(t, 12, func(f *fleet) {
			w := newFlow(f)
			for n := range 3 {
				f.start(fmt.Sprintf("w%d", n), w.into)
			}
			w.settle(8*time.Second, 3)
			<-time.After(failover + time.Duration(seed)*731*time.Millisecond)
			w.silence()
			f.workers[fmt.Sprintf("w%d", seed%3)].kill()
			<-time.After(3 * failover)
			w.quiet(failover*3/2+1500*time.Millisecond, "when a worker died")
			w.settle(0, 2)
			w.stop()
		})
	}
}

// All watchers die at once, and others take their place.
func TestAllWatchersDie(t *testing.T) {
	for seed := range 2 * soak() {
		bubble(t, 12, func(f *fleet) {
			w := newFlow(f)
			for n := range 6 {
				f.start(fmt.Sprintf("w%d", n), w.into)
			}
			w.settle(8*time.Second, 6)
			<-time.After(2*failover + time.Duration(seed)*731*time.Millisecond)
			w.silence()
			scans := f.scans(2 * failover)
			if len(scans) != 2 {
				f.Fatalf("%d workers scan the table, want 2: %v", len(scans), scans)
			}
			for _, id := range scans {
				f.workers[id].kill()
			}
			<-time.After(5 * failover)
			w.quiet(failover*5/2+1500*time.Millisecond, "when both watchers died")
			w.settle(0, 4)
			w.stop()
		})
	}
}

// scans returns the workers that scan the table within the time.
func (f *fleet) scans(within time.Duration) []string {
	var mu sync.Mutex
	var ids []string
	for id, m := range f.workers {
		m.link.mu.Lock()
		m.link.before = func(_ context.Context, op string) error {
			mu.Lock()
			defer mu.Unlock()
			if op == "Scan" && !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
			return nil
		}
		m.link.mu.Unlock()
	}
	<-time.After(within)
	mu.Lock()
	defer mu.Unlock()
	for _, m := range f.workers {
		m.link.mu.Lock()
		m.link.before = nil
		m.link.mu.Unlock()
	}
	return slices.Clone(ids)
}

// A handler takes longer than the time for a hand-over. Its context ends, the last checkpoint is
// passed, and an event says so. A handler that ignores its context holds up nothing.
func TestHandOverEnds(t *testing.T) {
	for _, stubborn := range []bool{false, true} {
		bubble(t, 2, func(f *fleet) {
			release := make(chan struct{})
			slow := func(c *consumer.Config) {
				c.HandOverTimeout = 5 * time.Second
				c.Handler = func(ctx context.Context, b *consumer.Batch) error {
					if b.Records[0].PartitionKey == "quick" {
						f.record(b.Records)
						return nil
					}
					if stubborn {
						<-release
					}
					<-ctx.Done()
					return ctx.Err()
				}
			}
			f.start("w1", slow)
			f.await(time.Second, "all leases", func() bool { return f.loads()["w1"] == 2 })
			for n := range 2 {
				key := f.stream.keysOf(n, 1)[0]
				f.stream.put("slow", key)
			}
			<-time.After(time.Second)
			f.start("w2")
			f.await(12*time.Second+failover/2, "the record", func() bool {
				n, _ := f.delivered()
				return n == 1
			})
			late := f.happened(consumer.EventHandOverTimeout)
			if len(late) != 1 || late[0].Worker != "w1" || late[0].Other != "w2" {
				t.Errorf("events: %+v", late)
			}
			if lost := f.happened(consumer.EventLeaseLost); len(lost) > 0 {
				t.Errorf("lost: %+v", lost)
			}
			close(release)
		})
	}
}

// Three calls to the table in a row hang until their time is over. The lease is not lost.
func TestHangingCallsCostNoLease(t *testing.T) {
	bubble(t, 2, func(f *fleet) {
		w := newFlow(f)
		m := f.start("w1", w.into)
		w.settle(8*time.Second, 1)
		var mu sync.Mutex
		hung := 0
		for range 5 {
			<-time.After(failover)
			mu.Lock()
			hung = 0
			mu.Unlock()
			m.link.mu.Lock()
			m.link.before = func(ctx context.Context, op string) error {
				mu.Lock()
				hangs := op == "UpdateItem" && hung < 2*3 // of both leases
				if hangs {
					hung++
				}
				mu.Unlock()
				if hangs {
					<-ctx.Done()
					return ctx.Err()
				}
				return nil
			}
			m.link.mu.Unlock()
		}
		<-time.After(failover)
		w.stop()
		if lost := f.happened(consumer.EventLeaseLost); len(lost) > 0 || hung != 6 {
			t.Errorf("%d calls hung, lost %+v", hung, lost)
		}
	})
}

// A role may not add the index by owner, or not read it: workers that asked and watchers get
// leases, and the fleet comes to even shares all the same.
func TestFleetWithoutIndex(t *testing.T) {
	for _, there := range []bool{false, true} {
		bubble(t, 12, func(f *fleet) { withoutIndex(f, there) })
	}
}

func withoutIndex(f *fleet, there bool) {
	if f.table.NoIndex = !there; there {
		f.table.Before = func(_ context.Context, op, _ string) error {
			if op == "Query" {
				return &smithy.GenericAPIError{Code: "AccessDeniedException"}
			}
			return nil
		}
	}
	w := newFlow(f)
	f.start("w1", w.into)
	w.settle(8*time.Second, 1)
	for n := 2; n <= 5; n++ {
		f.start(fmt.Sprintf("w%d", n), w.into)
		<-time.After(2 * failover)
	}
	w.settle(2*failover, 5)
	f.workers["w1"].kill()
	<-time.After(3 * failover)
	w.quiet(failover*3/2+2500*time.Millisecond, "when a worker died")
	f.workers["w2"].stop()
	w.settle(4*failover, 3)
	w.stop()
	f.complete()
}
