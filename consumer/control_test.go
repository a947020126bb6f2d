package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/consumer"
)

// onEachForm runs a test with each handler form.
func onEachForm(t *testing.T, shards int, test func(f *fleet, form form)) {
	for _, form := range forms {
		t.Run(form.name, func(t *testing.T) {
			bubble(t, shards, func(f *fleet) { test(f, form) })
		})
	}
}

// A handler that is ten times slower than the failover time loses no lease, and gets no record
// twice.
func TestHandlerSlowerThanFailover(t *testing.T) {
	onEachForm(t, 4, func(f *fleet, form form) {
		f.stream.put("x", keys(16)...)
		tally := newTally(f)
		work := form.into(func(ctx context.Context, r *runnel.Record) error {
			if err := doing(ctx, 10*failover); err != nil {
				return err
			}
			tally.note(r)
			return nil
		})
		slow := func(c *consumer.Config) { c.HandOverTimeout = time.Hour }
		f.start("w1", work, slow)
		f.start("w2", work, slow)
		tally.awaitCount(200*failover, 16)
		<-time.After(20 * failover)
		tally.wantCount(16, 0)
		f.wentQuietly()
	})
}

// A paused shard hands out no record and keeps its lease; the others go on. The pause may come from
// the handler.
func TestPause(t *testing.T) {
	onEachForm(t, 2, func(f *fleet, form form) {
		tally := newTally(f)
		paused := f.stream.shards[0].id
		var w *member
		work := form.into(func(_ context.Context, r *runnel.Record) error {
			if string(r.Data) == "pause" {
				w.Pause(r.ShardID)
			}
			tally.note(r)
			return nil
		})
		w = f.start("w1", work, func(c *consumer.Config) { c.Parallel = 0 })
		f.await(failover, "the leases", func() bool { return f.loads()["w1"] == 2 })
		f.stream.put("pause", f.stream.keysOf(0, 1)...)
		tally.awaitCount(failover, 1)
		<-time.After(time.Second)
		f.stream.put("x", f.stream.keysOf(0, 10)...)
		f.stream.put("x", f.stream.keysOf(1, 10)...)
		<-time.After(10 * failover)
		tally.wantCount(11, 0)
		w.Resume(paused)
		tally.awaitCount(failover, 21)
		w.Pause()
		f.stream.put("x", f.stream.keysOf(0, 1)...)
		f.stream.put("x", f.stream.keysOf(1, 1)...)
		<-time.After(failover)
		tally.wantCount(21, 0)
		w.Resume()
		tally.awaitCount(failover, 23)
		<-time.After(failover)
		tally.wantCount(23, 0)
		f.wentQuietly()
	})
}

// A pause ends with the hold: the next owner goes on.
func TestPauseEndsWithTheHold(t *testing.T) {
	for _, kill := range []bool{false, true} {
		onEachForm(t, 1, func(f *fleet, form form) {
			tally := newTally(f)
			w := f.start("w1", form.into(tally.handle))
			f.await(failover, "the lease", func() bool { return f.loads()["w1"] == 1 })
			w.Pause()
			f.stream.put("x", keys(10)...)
			<-time.After(failover)
			if kill {
				w.kill()
				<-w.err
			} else {
				f.mustStop(w)
			}
			tally.wantCount(0, 0)
			f.start("w2", form.into(tally.handle))
			tally.awaitCount(3*failover, 10)
		})
	}
}

// controlling hands each event to control, with the worker, once start has returned it.
func (f *fleet) controlling(
	id string, control func(*member, consumer.Event), change ...func(*consumer.Config),
) *member {
	f.Helper()
	var w *member
	started := make(chan struct{})
	w = f.start(id, append(change, func(c *consumer.Config) {
		c.OnEvent = func(e consumer.Event) {
			f.observe(e)
			<-started
			control(w, e)
		}
	})...)
	close(started)
	return w
}

// OnEvent may pause a shard as soon as the worker has it: no record is handed out.
func TestPauseAtTheTaking(t *testing.T) {
	onEachForm(t, 1, func(f *fleet, form form) {
		f.stream.put("x", keys(10)...)
		tally := newTally(f)
		w := f.controlling("w1", func(w *member, e consumer.Event) {
			if e.Kind == consumer.EventLeaseTaken {
				w.Pause(e.ShardID)
			}
		}, form.into(tally.handle))
		<-time.After(3 * failover)
		tally.wantCount(0, 0)
		w.Resume()
		tally.awaitCount(failover, 10)
	})
}

// A paused shard has no end: neither its children nor a hand-over wait for more than that.
func TestPauseBeforeTheEnd(t *testing.T) {
	bubble(t, 1, func(f *fleet) {
		d := newDiary(f)
		w := f.start("w1", d.into)
		d.awaitLine("w1 s made at start")
		w.Pause()
		f.stream.split(0)
		<-time.After(3 * failover)
		if d.count("stop") > 0 || d.count("made") != 1 {
			t.Errorf("%v", d.lines)
		}
		w.Resume()
		d.awaitLine("w1 s stop ended")
		d.awaitLine("w1 s2 made at start")
	})
}

// Seek goes back, from outside and from a handler: the records behind the position come again, in
// order, and the running call ends.
func TestSeek(t *testing.T) {
	onEachForm(t, 2, func(f *fleet, form form) {
		tally := newTally(f)
		shard := f.stream.shards[0].id
		var w *member
		var sought atomic.Bool
		work := form.into(func(ctx context.Context, r *runnel.Record) error {
			switch string(r.Data) {
			case "hang":
				<-ctx.Done()
				if cause := context.Cause(ctx).Error(); !strings.Contains(cause, "sought") {
					f.Errorf("the cause is %s", cause)
				}
				tally.mu.Lock()
				defer tally.mu.Unlock()
				tally.times[place{}]++ // a mark
				return nil             // which does not count
			case "back":
				to := f.stream.position(0, 2)
				if sought.CompareAndSwap(false, true) {
					tally.note(r)
					if err := w.Seek(f.Context(), r.ShardID, to); err != nil {
						f.Error(err)
					}
					return nil
				}
			}
			tally.note(r)
			return nil
		})
		w = f.start("w1", work)
		f.stream.put("x", f.stream.keysOf(0, 5)...)
		tally.awaitCount(failover, 5)
		f.stream.put("back", f.stream.keysOf(0, 1)...)
		f.await(failover, "the records again", func() bool {
			_, again := tally.count()
			return again >= 3
		})
		<-time.After(failover)
		tally.wantCount(6, 3)
		f.stream.put("hang", f.stream.keysOf(0, 1)...)
		<-time.After(time.Second)
		if err := w.Seek(f.Context(), shard, f.stream.position(0, 6)); err != nil { // forward
			f.Fatal(err)
		}
		if got := f.leases()[0].Processed(); got != f.stream.position(0, 6) {
			f.Errorf("the row has %s", got)
		}
		<-time.After(time.Second)
		tally.mu.Lock()
		marks := tally.times[place{}]
		tally.mu.Unlock()
		if marks != 1 {
			f.Error("the running call did not end, or came again")
		}
		if err := w.Seek(f.Context(), shard, runnel.Start()); err != nil {
			f.Fatal(err)
		}
		<-time.After(failover)
		tally.wantCount(6, 3+6)
		if err := w.Seek(f.Context(), shard, f.stream.position(0, 6)); err != nil {
			f.Fatal(err)
		}
		f.mustStop(w)
		for _, l := range f.leases() {
			if l.Key == shard && l.Processed() != f.stream.position(0, 6) {
				f.Errorf("the row has %s", l.Processed())
			}
		}
		f.wentQuietly()
	})
}

// Bad seeks are refused in a sentence.
func TestSeekIsRefused(t *testing.T) {
	bubble(t, 2, func(f *fleet) {
		tally := newTally(f)
		w := f.start("w1", each(tally.handle).asHandler)
		f.stream.put("x", keys(10)...)
		tally.awaitCount(failover, 10)
		shard := f.stream.shards[0].id
		for want, at := range map[string]runnel.Position{
			"is not one of this shard":  f.stream.position(1, 0),
			"want that of a record":     runnel.End(),
			"LATEST: want that of a re": {Sequence: runnel.Latest},
		} {
			err := w.Seek(f.Context(), shard, at)
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("seek to %s: %v", at, err)
			}
		}
		err := w.Seek(f.Context(), "shardId-000000000009", runnel.Start())
		if !errors.Is(err, consumer.ErrNotHeld) {
			t.Errorf("a shard of another worker: %v", err)
		}
		f.mustStop(w)
		if err := w.Seek(f.Context(), shard, runnel.Start()); !errors.Is(err, consumer.ErrNotHeld) {
			t.Errorf("after Run: %v", err)
		}
		tally.wantCount(10, 0)
		s := f.start("w2", intoSink(newChain(calm(), 20)))
		f.await(failover, "the leases", func() bool { return f.loads()["w2"] == 2 })
		if err := s.Seek(f.Context(), shard, runnel.Start()); err == nil ||
			!strings.Contains(err.Error(), "Sink") {
			t.Errorf("with a sink: %v", err)
		}
	})
}

// Seeks at once: each returns, the last one counts, and the rows follow.
func TestSeeksAtOnce(t *testing.T) {
	onEachForm(t, 1, func(f *fleet, form form) {
		f.stream.put("x", keys(100)...)
		tally := newTally(f)
		w := f.start("w1", form.into(func(ctx context.Context, r *runnel.Record) error {
			if err := doing(ctx, time.Millisecond); err != nil {
				return err
			}
			tally.note(r)
			return nil
		}))
		tally.awaitCount(failover, 100)
		shard := f.stream.shards[0].id
		errs := make(chan error, 10)
		for i := range 10 {
			go func() { errs <- w.Seek(f.Context(), shard, f.stream.position(0, 9*i)) }()
		}
		nils := 0
		for range 10 {
			if err := <-errs; err == nil {
				nils++
			}
		}
		if nils == 0 {
			f.Error("no seek succeeded")
		}
		if err := w.Seek(f.Context(), shard, f.stream.position(0, 89)); err != nil {
			f.Error(err)
		}
		_, before := tally.count()
		<-time.After(failover)
		if _, again := tally.count(); again-before > 11 || again-before < 10 {
			f.Errorf("%d records came after the last seek", again-before)
		}
		if got := f.leases()[0].Processed(); got != f.stream.position(0, 99) {
			f.Errorf("the row has %s", got)
		}
	})
}

// A seek that another one overtakes before the row has it returns, although the shard does not come
// to its position.
func TestSeekIsOvertaken(t *testing.T) {
	bubble(t, 1, func(f *fleet) {
		f.stream.put("x", keys(100)...)
		tally := newTally(f)
		w := f.start("w1", each(tally.handle).asHandler)
		tally.awaitCount(failover, 100)
		w.Pause()
		shard := f.stream.shards[0].id
		mend := w.link.cut()
		first, second := make(chan error, 1), make(chan error, 1)
		go func() { first <- w.Seek(f.Context(), shard, f.stream.position(0, 90)) }()
		<-time.After(100 * time.Millisecond)
		go func() { second <- w.Seek(f.Context(), shard, runnel.Start()) }()
		<-time.After(100 * time.Millisecond)
		mend()
		if err := <-second; err != nil {
			t.Error(err)
		}
		select {
		case <-first: // the row had its position for a moment, or never
		case <-time.After(failover):
			t.Error("the first one does not return")
			w.Resume()
		}
	})
}

// A seek of a child that waits for its parent holds until the child begins.
func TestSeekBeforeTheParentsEnd(t *testing.T) {
	onEachForm(t, 1, func(f *fleet, form form) {
		f.stream.put("blocks", "key-0")
		f.stream.split(0)
		f.stream.put("x", f.stream.keysOf(0, 10)...)
		tally := newTally(f)
		release := make(chan struct{})
		w := f.start("w1", form.into(func(ctx context.Context, r *runnel.Record) error {
			if string(r.Data) == "blocks" {
				<-release
			}
			tally.note(r)
			return nil
		}))
		<-time.After(failover)
		child := f.stream.shards[1].id
		err := w.Seek(f.Context(), child, f.stream.position(1, 4))
		if err != nil && !errors.Is(err, consumer.ErrNotHeld) {
			f.Fatal(err)
		}
		held := err == nil
		close(release)
		<-time.After(failover)
		want := 11
		if held {
			want = 6
		}
		tally.wantCount(want, 0)
	})
}

// Seek while the filter is made from the stream, and the doubles of the units behind it.
func TestSeekWhileRebuilding(t *testing.T) {
	onEachForm(t, 1, func(f *fleet, form form) {
		for i := range 20 {
			f.stream.put(unit(1, uint64(i+1), "a", fmt.Sprint(i, "a"), fmt.Sprint(i, "b")), "a")
		}
		tally := newTally(f)
		m := f.start("w1", form.into(tally.handle))
		tally.awaitCount(failover, 40)
		f.mustStop(m)
		f.forget()
		rebuilding := make(chan struct{})
		var once atomic.Bool
		f.stream.fault = func(op string, _ runnel.ShardID) error {
			if op == "GetRecords" && once.CompareAndSwap(false, true) {
				close(rebuilding)
				<-time.After(3 * time.Second)
			}
			return nil
		}
		f.stream.put(unit(1, 3, "a", "2a", "2b"), "a") // a double
		w := f.start("w2", form.into(tally.handle))
		<-rebuilding
		if err := w.Seek(f.Context(), f.stream.shards[0].id, f.stream.position(0, 9)); err != nil {
			f.Fatal(err)
		}
		<-time.After(2 * failover)
		tally.wantCount(40, 21)
	})
}

// After a seek the units behind the position come again, each once: the filter of the former
// reading is void.
func TestSeekVoidsTheFilter(t *testing.T) {
	onEachForm(t, 1, func(f *fleet, form form) {
		for i := range 10 {
			u := unit(1, uint64(i+1), "a", fmt.Sprint(i, "a"), fmt.Sprint(i, "b"))
			f.stream.put(u, "a", "a") // the second one is a double
		}
		tally := newTally(f)
		w := f.start("w1", form.into(tally.handle))
		tally.awaitCount(failover, 20)
		<-time.After(failover)
		shard := f.stream.shards[0].id
		if err := w.Seek(f.Context(), shard, runnel.Start()); err != nil {
			f.Fatal(err)
		}
		<-time.After(failover)
		tally.wantCount(20, 20)
		to := f.stream.position(0, 8) // in the fifth unit
		if err := w.Seek(f.Context(), shard, to); err != nil {
			f.Fatal(err)
		}
		<-time.After(failover)
		tally.wantCount(20, 20+11)
	})
}

// A handler may seek with its own context, which the seek ends.
func TestSeekWithTheHandlersContext(t *testing.T) {
	onEachForm(t, 1, func(f *fleet, form form) {
		var w *member
		var result atomic.Pointer[error]
		tally := newTally(f)
		w = f.start("w1", form.into(func(ctx context.Context, r *runnel.Record) error {
			tally.note(r)
			if string(r.Data) == "back" && result.Load() == nil {
				err := w.Seek(ctx, r.ShardID, runnel.Start())
				result.Store(&err)
			}
			return nil
		}))
		f.await(failover, "the lease", func() bool { return f.loads()["w1"] == 1 })
		f.stream.put("x", "a", "b")
		f.stream.put("back", "c")
		<-time.After(failover)
		if err := result.Load(); err == nil || *err != nil {
			f.Errorf("it returned %v", *err)
		}
		tally.wantCount(3, 3)
	})
}

// Release passes a shard on, and the plan leaves it there. It says so if no worker can have it.
func TestRelease(t *testing.T) {
	onEachForm(t, 4, func(f *fleet, form form) {
		tally := newTally(f)
		var w1 *member
		work := form.into(func(ctx context.Context, r *runnel.Record) error {
			tally.note(r)
			if string(r.Data) != "release" {
				return nil
			}
			return w1.Release(ctx, r.ShardID)
		})
		w1 = f.start("w1", work)
		f.await(failover, "the leases", func() bool { return f.loads()["w1"] == 4 })
		shard := f.stream.shards[0].id
		if err := w1.Release(f.Context(), shard); !errors.Is(err, consumer.ErrNoRoom) {
			f.Errorf("alone: %v", err)
		}
		if err := w1.Release(f.Context(), "shardId-9"); !errors.Is(err, consumer.ErrNotHeld) {
			f.Errorf("not held: %v", err)
		}
		f.start("w2", work, func(c *consumer.Config) { c.MaxLeases = 2 })
		f.await(2*failover, "even shares", func() bool { return f.loads()["w2"] == 2 })
		<-time.After(failover)
		mine := f.heldBy("w1")
		if err := w1.Release(f.Context(), mine[0]); !errors.Is(err, consumer.ErrNoRoom) {
			f.Errorf("beside a full worker: %v", err)
		}
		f.start("w3", work)
		<-time.After(3 * failover)
		mine = f.heldBy("w1")
		i := slices.IndexFunc(f.stream.shards, func(s *fakeShard) bool { return s.id == mine[0] })
		open := slices.Index(f.openIDs(), f.stream.shards[i].id)
		f.stream.put("release", f.stream.keysOf(open, 1)...)
		moved := func() bool { return slices.Contains(f.heldBy("w3"), mine[0]) }
		f.await(failover, "the move", moved)
		<-time.After(5 * failover)
		if !moved() {
			f.Error("it came back")
		}
		for _, l := range f.leases() {
			if l.Key == mine[0] && l.Pin != "w3" {
				f.Errorf("the row says that %q should keep it", l.Pin)
			}
		}
		tally.wantCount(1, 0)
		f.wentQuietly()
	})
}

// Release passes nothing to a Java worker, which would not notice it.
func TestReleaseBesideJava(t *testing.T) {
	bubble(t, 2, func(f *fleet) {
		java := f.javaRow(f.stream.shards[1], "TRIM_HORIZON")
		java["leaseOwner"] = text("java")
		f.putRow(java)
		w := f.start("w1", each(newTally(f).handle).asHandler)
		stop := make(chan struct{})
		f.group.Go(func() {
			for i := int64(1); ; i++ {
				select {
				case <-stop:
					return
				case <-time.After(time.Second):
					f.edit(f.stream.shards[1].id, "SET #a = :a", "leaseCounter", number(i))
				}
			}
		})
		<-time.After(3 * failover)
		if got := f.loads(); got["w1"] != 1 || got["java"] != 1 {
			t.Errorf("%v", got)
		}
		err := w.Release(f.Context(), f.stream.shards[0].id)
		if !errors.Is(err, consumer.ErrNoRoom) {
			t.Errorf("got %v", err)
		}
		close(stop)
	})
}

// heldBy returns the shards of a worker.
func (f *fleet) heldBy(worker string) (ids []runnel.ShardID) {
	for _, l := range f.leases() {
		if l.Owner == worker {
			ids = append(ids, l.Key)
		}
	}
	return ids
}

func (f *fleet) openIDs() (ids []runnel.ShardID) {
	f.stream.mu.Lock()
	defer f.stream.mu.Unlock()
	for _, s := range f.stream.open() {
		ids = append(ids, s.id)
	}
	return ids
}

// OnEvent may pause and resume, and wait for another goroutine that seeks.
func TestControlFromEvents(t *testing.T) {
	onEachForm(t, 1, func(f *fleet, form form) {
		tally := newTally(f)
		var w atomic.Pointer[member]
		var seeks atomic.Int64
		done := make(chan error, 1)
		m := f.start("w1", form.into(tally.handle), func(c *consumer.Config) {
			observe := c.OnEvent
			c.OnEvent = func(e consumer.Event) {
				observe(e)
				m := w.Load()
				if m == nil {
					return
				}
				m.Pause(e.ShardID)
				m.Resume(e.ShardID)
				if e.Kind == consumer.EventCommitted && e.Position == f.stream.position(0, 2) &&
					seeks.Add(1) == 1 {
					begun := make(chan struct{})
					go func() {
						close(begun)
						done <- m.Seek(f.Context(), e.ShardID, runnel.Start())
					}()
					<-begun
					<-time.After(time.Second)
				}
			}
		})
		w.Store(m)
		f.await(failover, "the lease", func() bool { return f.loads()["w1"] == 1 })
		f.stream.put("x", keys(3)...)
		if err := <-done; err != nil {
			f.Error(err)
		}
		<-time.After(failover)
		if n, again := tally.count(); n != 3 || again != 3 {
			f.Errorf("%d records, %d again", n, again)
		}
	})
}

// A handler that ignores the end of its context is reported, with its shard and since when: after a
// Seek, and after a stop.
func TestStuckHandlerIsReported(t *testing.T) {
	for _, how := range []string{"seek", "stop"} {
		onEachForm(t, 2, func(f *fleet, form form) {
			release := make(chan struct{})
			var began atomic.Pointer[time.Time]
			w := f.start("w1", form.into(func(context.Context, *runnel.Record) error {
				began.Store(new(time.Now()))
				<-release
				return nil
			}), func(c *consumer.Config) { c.ShutdownTimeout = time.Second })
			f.await(failover, "the leases", func() bool { return f.loads()["w1"] == 2 })
			f.stream.put("x", f.stream.keysOf(1, 1)...)
			shard := f.stream.shards[1].id
			<-time.After(time.Second)
			if how == "seek" {
				if err := w.Seek(f.Context(), shard, runnel.Start()); err != nil {
					f.Fatal(err)
				}
			} else {
				w.stop()
			}
			<-time.After(35 * time.Second)
			stuck := f.happened(consumer.EventHandlerStuck)
			if len(stuck) != 3 || stuck[0].ShardID != shard ||
				!stuck[0].Since.Equal(*began.Load()) {
				f.Errorf("reported: %+v", stuck)
			}
			close(release)
		})
	}
}

// Seek back by an hour over a split and a merge: each shard that the fleet holds is sought for
// itself, and its records since then come again.
func TestSeekAnHourBack(t *testing.T) {
	if underRace {
		t.Skip("SKIP: hours of virtual time; TestFormsSurvive seeks under the race detector")
	}
	onEachForm(t, 2, func(f *fleet, form form) {
		tally := newTally(f)
		w := f.start("w1", form.into(tally.handle))
		n := 0
		put := func() {
			for range 6 {
				n += len(f.stream.put("x", keys(10)...))
				<-time.After(5 * time.Minute)
			}
		}
		put()
		put()
		f.stream.split(0)
		put()
		f.stream.merge(1)
		put()
		tally.awaitCount(failover, n)
		again := 0
		hour := time.Now().Add(-time.Hour)
		for i, s := range f.stream.shards {
			if !s.closed.IsZero() {
				continue
			}
			to := runnel.Start()
			for j, r := range s.records {
				if r.ApproximateArrivalTimestamp.Before(hour) {
					to = f.stream.position(i, j)
				} else {
					again++
				}
			}
			if err := w.Seek(f.Context(), s.id, to); err != nil {
				f.Fatal(err)
			}
		}
		<-time.After(2 * failover)
		tally.wantCount(n, again)
		if again == 0 || again == n {
			f.Errorf("%d of %d records again", again, n)
		}
	})
}
