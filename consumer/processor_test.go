package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/consumer"
	"github.com/runnel-stream/runnel/keyspace"
)

// diary is what happens to the processors of a fleet, a line each, and makes them.
type diary struct {
	*fleet
	mu    sync.Mutex
	lines []string
	busy  map[runnel.ShardID]int
	last  *consumer.Checkpointer // of the last call
	// process and stop do the work, if they are set.
	process func(ctx context.Context, b *consumer.Batch, c *consumer.Checkpointer) error
	stop    func(ctx context.Context, why consumer.StopReason, c *consumer.Checkpointer) error
}

func newDiary(f *fleet) *diary { return &diary{fleet: f, busy: map[runnel.ShardID]int{}} }

func (d *diary) into(c *consumer.Config) {
	c.Handler = nil
	c.NewProcessor = func(_ context.Context, s consumer.Shard) (consumer.Processor, error) {
		d.note(c.WorkerID, s.ID, "made at %s", s.Checkpoint)
		return &diarist{diary: d, worker: c.WorkerID, shard: s}, nil
	}
}

func (d *diary) note(worker string, shard runnel.ShardID, format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	number := strings.TrimLeft(strings.TrimPrefix(string(shard), "shardId-"), "0")
	line := fmt.Sprintf("%s %s %s", worker, "s"+number, fmt.Sprintf(format, args...))
	d.lines = append(d.lines, line)
}

// has reports whether there is such a line.
func (d *diary) has(line string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Contains(d.lines, line)
}

func (d *diary) count(part string) (n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, line := range d.lines {
		if strings.Contains(line, part) {
			n++
		}
	}
	return n
}

func (d *diary) awaitLine(line string) {
	d.Helper()
	d.await(4*failover, line, func() bool { return d.has(line) })
}

func (d *diary) want(lines ...string) {
	d.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	if !slices.Equal(d.lines, lines) {
		d.Errorf("got:\n%s\nwant:\n%s", strings.Join(d.lines, "\n"), strings.Join(lines, "\n"))
	}
}

// checkpointer returns the Checkpointer of the last call.
func (d *diary) checkpointer() *consumer.Checkpointer {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.last
}

// diarist is a Processor.
type diarist struct {
	*diary
	worker string
	shard  consumer.Shard
}

func (p *diarist) enter(c *consumer.Checkpointer) (leave func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = c
	if p.busy[p.shard.ID]++; p.busy[p.shard.ID] > 1 {
		p.Errorf("%s: two calls at a time", p.shard.ID)
	}
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.busy[p.shard.ID]--
	}
}

func (p *diarist) Process(
	ctx context.Context, b *consumer.Batch, c *consumer.Checkpointer,
) error {
	defer p.enter(c)()
	if len(b.Records) > 0 {
		p.note(p.worker, p.shard.ID, "%s", dataOf(b.Records))
	} else {
		p.note(p.worker, p.shard.ID, "-")
	}
	if p.process == nil {
		return nil
	}
	return p.process(ctx, b, c)
}

func (p *diarist) Stop(
	ctx context.Context, why consumer.StopReason, c *consumer.Checkpointer,
) error {
	defer p.enter(c)()
	p.note(p.worker, p.shard.ID, "stop %s", why)
	if p.stop == nil {
		return nil
	}
	return p.stop(ctx, why, c)
}

// all checkpoints the end of a batch.
func all(ctx context.Context, b *consumer.Batch, c *consumer.Checkpointer) error {
	if n := len(b.Records); n > 0 {
		return c.Checkpoint(ctx, b.Records[n-1].Position)
	}
	return nil
}

// A Processor is made for each shard, gets an empty batch each second, and is stopped. A shard ends
// with its consent alone.
func TestProcessorLives(t *testing.T) {
	bubble(t, 1, func(f *fleet) {
		d := newDiary(f)
		var stops atomic.Int64
		d.process = all
		d.stop = func(_ context.Context, why consumer.StopReason, _ *consumer.Checkpointer) error {
			if stops.Add(1) < 3 && why == consumer.StopEnded {
				panic("not yet")
			}
			return nil
		}
		var made []consumer.Shard
		m := f.start("w1", d.into, func(c *consumer.Config) {
			inner := c.NewProcessor
			c.NewProcessor = func(
				ctx context.Context, s consumer.Shard,
			) (consumer.Processor, error) {
				d.mu.Lock()
				made = append(made, s)
				d.mu.Unlock()
				return inner(ctx, s)
			}
		})
		d.awaitLine("w1 s made at start")
		<-time.After(3500 * time.Millisecond)
		if n := d.count("s -"); n != 3 {
			t.Errorf("%d empty batches in 3.5 s", n)
		}
		f.stream.put("a", "key")
		d.awaitLine("w1 s a")
		at := f.stream.last(0, 0)
		f.stream.split(0)
		d.awaitLine("w1 s2 made at start")
		f.mustStop(m)
		if n := d.count("s stop ended"); n != 3 {
			t.Errorf("%d calls of Stop at the shard's end, want 3", n)
		}
		if n := d.count("stop"); n != 5 || d.count("stop stopped") != 2 {
			t.Errorf("%d calls of Stop, want 5, two for the worker's stop", n)
		}
		if len(made) != 3 || made[0].Range != keyspace.All() || made[0].Stream != "orders" ||
			made[1].Parents[0] != made[0].ID || made[1].Range == made[2].Range {
			t.Errorf("made for %+v", made)
		}
		if e := f.happened(consumer.EventCheckpointed); len(e) == 0 || e[0].Position != at {
			t.Errorf("checkpointed: %+v", e)
		}
	})
}

// A slow call does not bring an empty batch while records wait, and a paused shard gets none.
func TestProcessorsEmptyBatches(t *testing.T) {
	bubble(t, 1, func(f *fleet) {
		d := newDiary(f)
		d.process = func(ctx context.Context, b *consumer.Batch, _ *consumer.Checkpointer) error {
			return doing(ctx, 5*time.Second)
		}
		f.stream.put("a", keys(100)...)
		m := f.start("w1", d.into, func(c *consumer.Config) { c.MaxRecords = 4 })
		<-time.After(2 * time.Minute)
		if empty := d.count("s -"); empty > 0 || d.count("a") < 20 {
			t.Errorf("%d empty batches between records", empty)
		}
		f.await(time.Minute, "an empty batch", func() bool { return d.count("s -") > 0 })
		<-time.After(failover)
		m.Pause()
		<-time.After(failover)
		before := d.count("s -")
		<-time.After(time.Minute)
		if n := d.count("s -"); n != before {
			t.Errorf("%d empty batches in the pause", n-before)
		}
	})
}

// Each reason for which a Processor is stopped.
func TestProcessorStops(t *testing.T) {
	bubble(t, 1, func(f *fleet) {
		f.stream.put("a", "key")
		d := newDiary(f)
		w1 := f.start("w1", d.into)
		d.awaitLine("w1 s a")
		at := f.stream.last(0, 0)
		if err := d.checkpointer().Checkpoint(f.Context(), at); err != nil {
			t.Fatal(err)
		}
		shard := f.stream.shards[0].id
		if err := w1.Seek(f.Context(), shard, runnel.Start()); err != nil {
			t.Fatal(err)
		}
		d.awaitLine("w1 s stop sought")
		f.await(failover, "the record again", func() bool { return d.count("w1 s a") == 2 })
		w2 := f.start("w2", d.into)
		<-time.After(failover)
		if err := w1.Release(f.Context(), shard); err != nil {
			t.Fatal(err)
		}
		d.awaitLine("w1 s stop passed")
		d.awaitLine("w2 s made at start")
		mend := w2.link.cut()
		d.awaitLine("w2 s stop lost")
		mend()
		d.awaitLine("w1 s made at start")
		if d.count("stop") != 3 {
			t.Errorf("%v", d.lines)
		}
	})
}

// A checkpoint is in the row when it returns, and a wrong one is refused.
func TestProcessorsCheckpoints(t *testing.T) {
	bubble(t, 2, func(f *fleet) {
		first := f.stream.keysOf(0, 3)
		f.stream.put("a", first...)
		f.stream.put("b", f.stream.keysOf(1, 1)...)
		f.stream.put("c", first...)
		foreign := f.stream.position(1, 0)
		d := newDiary(f)
		shard := f.stream.shards[0].id
		var begun, done atomic.Bool
		d.process = func(ctx context.Context, b *consumer.Batch, c *consumer.Checkpointer) error {
			if b.ShardID != shard || len(b.Records) < 6 || begun.Swap(true) {
				return nil
			}
			defer done.Store(true)
			refused := func(at runnel.Position) {
				t.Helper()
				if err := c.Checkpoint(ctx, at); !errors.Is(err, consumer.ErrCheckpointRefused) {
					t.Errorf("the checkpoint %s: %v", at, err)
				}
			}
			refused(runnel.Start())
			refused(runnel.End())
			refused(runnel.Position{Sequence: "49000000999"})
			refused(runnel.Position{Sequence: runnel.Latest})
			refused(foreign)
			for _, i := range []int{1, 3, 3, 5} {
				began := time.Now()
				at := b.Records[i].Position
				if err := c.Checkpoint(ctx, at); err != nil {
					t.Error(err)
				}
				if got := f.leases()[0].Processed(); got != at || time.Since(began) > time.Second {
					t.Errorf("the row has %s after %s, want %s", got, time.Since(began), at)
				}
				if i > 0 {
					refused(b.Records[i-1].Position)
				}
			}
			return nil
		}
		m := f.start("w1", d.into, func(c *consumer.Config) { c.MaxRecords = 6 })
		f.await(failover, "the checkpoints", done.Load)
		<-time.After(time.Second)
		c := d.checkpointer()
		f.mustStop(m)
		err := c.Checkpoint(f.Context(), f.stream.position(0, 5))
		if !errors.Is(err, consumer.ErrCheckpointRefused) {
			t.Errorf("a checkpoint after Stop: %v", err)
		}
	})
}

// Checkpoints of another goroutine return, and never move the row back, while pages without records
// for the handler pass.
func TestProcessorsCheckpointsFromElsewhere(t *testing.T) {
	bubble(t, 1, func(f *fleet) {
		d := newDiary(f)
		positions := make(chan runnel.Position, 1000)
		made := make(chan *consumer.Checkpointer, 1)
		d.process = func(_ context.Context, b *consumer.Batch, c *consumer.Checkpointer) error {
			select {
			case made <- c:
			default:
			}
			for _, r := range b.Records {
				positions <- r.Position
			}
			return nil
		}
		m := f.start("w1", d.into, func(c *consumer.Config) { c.MaxRecords = 3 })
		var last runnel.Position
		finished := make(chan struct{})
		f.group.Go(func() {
			defer close(finished)
			c := <-made
			for at := range positions {
				if err := c.Checkpoint(f.Context(), at); err != nil {
					t.Errorf("the checkpoint %s: %v", at, err)
				}
				last = at
				if got := f.leases()[0].Processed(); got.Less(at) {
					t.Errorf("the row has %s after the checkpoint %s", got, at)
				}
			}
		})
		for i := range 200 {
			f.stream.put(unit(1, uint64(i+1), "a", fmt.Sprint(i)), "a", "a")
			<-time.After(20 * time.Millisecond)
		}
		<-time.After(failover)
		close(positions)
		<-finished
		f.mustStop(m)
		want := f.stream.last(0, 0)
		if last == runnel.Start() || f.leases()[0].Processed() != want {
			t.Errorf("the row has %s, want %s", f.leases()[0].Processed(), want)
		}
	})
}

// A checkpoint is refused as soon as the lease is lost, also if the processor waits for it and does
// not look at its context.
func TestCheckpointOfALostLease(t *testing.T) {
	bubble(t, 1, func(f *fleet) {
		f.stream.put("a", "key")
		d := newDiary(f)
		cut := make(chan struct{})
		answer := make(chan error, 1)
		d.process = func(_ context.Context, b *consumer.Batch, c *consumer.Checkpointer) error {
			if len(b.Records) > 0 {
				<-cut
				answer <- c.Checkpoint(f.Context(), b.Records[0].Position)
			}
			return nil
		}
		m := f.start("w1", d.into)
		d.awaitLine("w1 s a")
		mend := sync.OnceFunc(m.link.cut())
		defer mend()
		close(cut)
		select {
		case err := <-answer:
			if !errors.Is(err, consumer.ErrCheckpointRefused) {
				t.Errorf("got %v", err)
			}
		case <-time.After(3 * failover):
			t.Error("the checkpoint does not return")
			mend()
		}
		d.awaitLine("w1 s stop lost")
	})
}

// NewProcessor fails, panics, returns nothing, and ends after its shard was passed on.
func TestProcessorIsMade(t *testing.T) {
	bubble(t, 1, func(f *fleet) {
		f.stream.put("a", "key")
		d := newDiary(f)
		var calls atomic.Int64
		f.start("w1", d.into, func(c *consumer.Config) {
			inner := c.NewProcessor
			c.NewProcessor = func(
				ctx context.Context, s consumer.Shard,
			) (consumer.Processor, error) {
				switch calls.Add(1) {
				case 1:
					return nil, errCut
				case 2:
					panic("no")
				case 3:
					return nil, nil //nolint:nilnil // the fault that is tested
				default:
					return inner(ctx, s)
				}
			}
		})
		d.awaitLine("w1 s a")
		if n := len(f.happened(consumer.EventFailed)); n != 3 {
			t.Errorf("%d failures were reported", n)
		}
	})
}

// A Processor that was made when its shard had to go is stopped.
func TestProcessorMadeTooLate(t *testing.T) {
	bubble(t, 1, func(f *fleet) {
		d := newDiary(f)
		m := f.start("w1", d.into, func(c *consumer.Config) {
			inner := c.NewProcessor
			c.NewProcessor = func(
				ctx context.Context, s consumer.Shard,
			) (consumer.Processor, error) {
				<-ctx.Done()
				return inner(ctx, s)
			}
			c.ShutdownTimeout = time.Second
		})
		<-time.After(time.Second)
		f.mustStop(m)
		d.want("w1 s made at start", "w1 s stop stopped")
	})
}

// A Processor checkpoints inside an aggregate. The next one gets the records behind it, without the
// doubles of the units of before and behind.
func TestProcessorsCheckpointInsideAnAggregate(t *testing.T) {
	for _, how := range []string{"passed", "killed", "sought"} {
		bubble(t, 1, func(f *fleet) {
			f.stream.put(unit(1, 1, "a", "1", "2"), "a")
			f.stream.put(pack(1, part{number: 2, low: 2, key: "a", data: []string{"3", "4"}},
				part{number: 3, low: 2, key: "b", data: []string{"5", "6"}}), "a")
			f.stream.put(unit(1, 2, "a", "3", "4"), "a") // a double
			f.stream.put(unit(1, 4, "a", "7"), "a")
			d := newDiary(f)
			d.process = func(
				ctx context.Context, b *consumer.Batch, c *consumer.Checkpointer,
			) error {
				if len(b.Records) == 7 {
					return c.Checkpoint(ctx, b.Records[2].Position)
				}
				return nil
			}
			m := f.start("w1", d.into)
			d.awaitLine("w1 s 1 2 3 4 5 6 7")
			<-time.After(time.Second)
			if got := f.leases()[0].Processed(); got.Sub != 0 || got == runnel.Start() {
				t.Errorf("the checkpoint is %s", got)
			}
			switch how {
			case "sought":
				at := f.leases()[0].Processed()
				at.Sub++
				if err := m.Seek(f.Context(), f.stream.shards[0].id, at); err != nil {
					t.Fatal(err)
				}
				d.awaitLine("w1 s 5 6 7")
				f.stream.put(unit(1, 1, "a", "1", "2"), "a")
				<-time.After(2 * time.Second)
				d.awaitLine("w1 s 5 6 7")
				return
			case "killed":
				m.kill()
				<-m.err
			default:
				f.mustStop(m)
			}
			f.start("w2", d.into)
			d.awaitLine("w2 s 4 5 6 7")
			if got := f.rebuilt(); got != 0 && how == "passed" {
				t.Errorf("it read again %d times", got)
			}
		})
	}
}
