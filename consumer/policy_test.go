package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/consumer"
	"github.com/runnel-stream/runnel/sink"
)

// poison fails on some records, and counts the attempts at each record.
type poison struct {
	*tally
	mu    sync.Mutex
	tries map[string]int
	fails func(r *runnel.Record, attempt int) error
	dead  []consumer.Failure
}

func newPoison(f *fleet, fails func(r *runnel.Record, attempt int) error) *poison {
	return &poison{tally: newTally(f), tries: map[string]int{}, fails: fails}
}

func (p *poison) do(_ context.Context, r *runnel.Record) error {
	p.mu.Lock()
	p.tries[r.PartitionKey]++
	n := p.tries[r.PartitionKey]
	p.mu.Unlock()
	if err := p.fails(r, n); err != nil {
		return err
	}
	p.note(r)
	return nil
}

// tried returns the attempts at a key's records.
func (p *poison) tried(key string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.tries[key]
}

// keep is a dead-letter function.
func (p *poison) keep(_ context.Context, f consumer.Failure) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dead = append(p.dead, f)
	return nil
}

// kept returns what DeadLetter took.
func (p *poison) kept() []consumer.Failure {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.dead)
}

// isPoison fails on the records of one key, as long as the attempt is below the limit.
func isPoison(below int) func(*runnel.Record, int) error {
	return func(r *runnel.Record, attempt int) error {
		if r.PartitionKey == "poison" && attempt < below {
			return errCut
		}
		return nil
	}
}

// fill puts 10,000 records into a stream of one shard, with one of the key poison in the middle.
func (f *fleet) fill() {
	f.stream.put("x", keys(5_000)...)
	f.stream.put("x", "poison")
	f.stream.put("x", keys(4_999)...)
}

const never = 1 << 30

func onError(p consumer.ErrorPolicy) func(*consumer.Config) {
	return func(c *consumer.Config) { c.OnError = p }
}

// Of 10,000 records one fails. It alone is tried again, until it succeeds; the others come once.
func TestPoisonIsTriedAgain(t *testing.T) {
	onEachForm(t, 1, func(f *fleet, form form) {
		f.fill()
		p := newPoison(f, isPoison(20))
		f.start("w1", form.into(p.do))
		<-time.After(failover)
		if n, _ := p.count(); form.name == "Record" && n != 9_999 {
			f.Errorf("%d records pass the one that fails, want all the others", n)
		}
		p.awaitCount(20*failover, 10_000)
		p.wantCount(10_000, 0)
		if n := p.tried("poison"); n != 20 {
			f.Errorf("%d attempts, want 20", n)
		}
		<-time.After(failover)
		if got := f.leases()[0].Processed(); got != f.stream.last(0, 0) {
			f.Errorf("the checkpoint is %s", got)
		}
	})
}

// Of 10,000 records one fails, and is skipped after three attempts, through DeadLetter. The
// position does not pass it as long as DeadLetter fails, and panics.
func TestPoisonIsSkipped(t *testing.T) {
	onEachForm(t, 1, func(f *fleet, form form) {
		f.fill()
		before := f.stream.position(0, 4_999)
		p := newPoison(f, isPoison(never))
		open := make(chan struct{})
		f.start("w1", form.into(p.do), onError(consumer.ErrorPolicy{
			Attempts: 3, Then: consumer.ThenSkip, Backoff: time.Millisecond,
			DeadLetter: func(ctx context.Context, failure consumer.Failure) error {
				select {
				case <-open:
					return p.keep(ctx, failure)
				default:
					panic("the table is away")
				}
			},
		}))
		<-time.After(6 * failover)
		if got := f.leases()[0].Processed(); before.Less(got) {
			f.Errorf("the checkpoint is %s, beyond %s", got, before)
		}
		if n := len(f.happened(consumer.EventSkipped)); n > 0 {
			f.Error("it was skipped")
		}
		close(open)
		p.awaitCount(failover, 9_999)
		p.wantCount(9_999, 0)
		<-time.After(failover)
		skipped := f.happened(consumer.EventSkipped)
		if len(skipped) != 1 || skipped[0].Records != 1 || !errors.Is(skipped[0].Err, errCut) {
			f.Errorf("skipped: %+v", skipped)
		}
		dead := p.kept()
		if len(dead) != 1 || dead[0].Attempts != 3 || p.tried("poison") != 3 ||
			dead[0].Records[0].PartitionKey != "poison" || dead[0].Stream != "orders" ||
			dead[0].ShardID != f.stream.shards[0].id || !errors.Is(dead[0].Err, errCut) {
			f.Errorf("%d attempts; dead: %+v", p.tried("poison"), dead)
		}
		if got := f.leases()[0].Processed(); got != f.stream.last(0, 0) {
			f.Errorf("the checkpoint is %s", got)
		}
	})
}

// A handler that ends its goroutine has failed, and so has a DeadLetter. The shard goes on.
func TestHandlerEndsItsGoroutine(t *testing.T) {
	onEachForm(t, 1, func(f *fleet, form form) {
		f.stream.put("x", "poison")
		p := newPoison(f, func(r *runnel.Record, _ int) error {
			if r.PartitionKey == "poison" {
				runtime.Goexit()
			}
			return nil
		})
		var letters atomic.Int64
		w := f.start("w1", form.into(p.do), onError(consumer.ErrorPolicy{
			Attempts: 3, Then: consumer.ThenSkip,
			DeadLetter: func(ctx context.Context, dead consumer.Failure) error {
				if letters.Add(1) == 1 {
					runtime.Goexit()
				}
				return p.keep(ctx, dead)
			},
		}))
		f.await(failover, "the dead letter", func() bool { return len(p.kept()) == 1 })
		f.stream.put("x", "a", "b")
		p.awaitCount(failover, 2)
		if n := p.tried("poison"); n != 3 || letters.Load() != 2 {
			t.Errorf("%d attempts, and %d at the dead letter", n, letters.Load())
		}
		f.mustStop(w)
		if end := f.leases()[0].Checkpoint; end != f.stream.position(0, 2) {
			t.Errorf("the checkpoint is %s", end)
		}
		f.wentQuietly()
	})
}

// Of 10,000 records one fails, and stops its shard alone, which keeps its lease. Resume tries anew,
// and so does the next owner, be it after a hand-over or a crash.
func TestPoisonStopsTheShard(t *testing.T) {
	for _, then := range []string{"resumed", "sought", "stopped", "released", "killed"} {
		t.Run(then, func(t *testing.T) {
			onEachForm(t, 2, func(f *fleet, form form) { stopsTheShard(f, form, then) })
		})
	}
}

func stopsTheShard(f *fleet, form form, then string) {
	f.stream.put("x", f.stream.keysOf(0, 50)...)
	bad := f.stream.keysOf(0, 51)[50]
	f.stream.put("x", bad)
	f.stream.put("x", f.stream.keysOf(0, 50)...)
	var healed atomic.Bool
	p := newPoison(f, func(r *runnel.Record, _ int) error {
		if r.PartitionKey == bad && !healed.Load() {
			return errCut
		}
		return nil
	})
	policy := onError(consumer.ErrorPolicy{Attempts: 4})
	w1 := f.start("w1", form.into(p.do), policy)
	f.await(3*failover, "the stop", func() bool {
		return len(f.happened(consumer.EventShardStopped)) == 1
	})
	<-time.After(5 * failover)
	if n := p.tried(bad); n != 4 {
		f.Errorf("%d attempts", n)
	}
	e := f.happened(consumer.EventShardStopped)
	if len(e) != 1 || e[0].Position != f.stream.position(0, 50) || !errors.Is(e[0].Err, errCut) {
		f.Errorf("stopped: %+v", e)
	}
	if got := f.leases()[0].Processed(); got != f.stream.position(0, 49) {
		f.Errorf("the checkpoint is %s", got)
	}
	f.stream.put("x", f.stream.keysOf(1, 10)...)
	before, _ := p.count()
	p.awaitCount(failover, before+10)
	if f.loads()["w1"] != 2 {
		f.Errorf("the lease is gone: %v", f.loads())
	}
	healed.Store(true)
	shard := f.stream.shards[0].id
	next := func() { f.start("w2", form.into(p.do), policy) }
	switch then {
	case "resumed":
		w1.Resume(shard)
	case "sought":
		if err := w1.Seek(f.Context(), shard, f.stream.position(0, 49)); err != nil {
			f.Error(err)
		}
	case "stopped":
		f.mustStop(w1)
		next()
	case "released":
		next()
		<-time.After(failover)
		err := w1.Release(f.Context(), shard)
		if err != nil && !errors.Is(err, consumer.ErrNotHeld) {
			f.Error(err) // the plan may have passed it on already
		}
	default:
		w1.kill()
		<-w1.err
		next()
	}
	p.awaitCount(4*failover, 111)
	<-time.After(failover)
	if got := f.leases()[0].Processed(); got != f.stream.position(0, 100) {
		f.Errorf("then the checkpoint is %s", got)
	}
}

// OnEvent may resume the shard at the event that says that it has stopped.
func TestResumeAtTheStop(t *testing.T) {
	onEachForm(t, 1, func(f *fleet, form form) {
		f.stream.put("x", "a", "poison", "b")
		p := newPoison(f, isPoison(3))
		f.controlling("w1", func(w *member, e consumer.Event) {
			if e.Kind == consumer.EventShardStopped {
				w.Resume(e.ShardID)
			}
		}, form.into(p.do), onError(consumer.ErrorPolicy{Attempts: 1}))
		p.awaitCount(failover, 3)
		if n := len(f.happened(consumer.EventShardStopped)); n != 2 {
			t.Errorf("it stopped %d times, want 2", n)
		}
	})
}

// With Once a shard that stops ends the worker with the handler's error.
func TestPoisonEndsOnce(t *testing.T) {
	onEachForm(t, 1, func(f *fleet, form form) {
		f.fill()
		p := newPoison(f, isPoison(never))
		w := f.start("w1", form.into(p.do), once, onError(consumer.ErrorPolicy{Attempts: 2}))
		err := <-w.err
		if !errors.Is(err, errCut) || !strings.Contains(err.Error(), "out of attempts") ||
			!strings.Contains(err.Error(), string(f.stream.shards[0].id)) {
			f.Errorf("it ended with %v", err)
		}
		if got := f.leases()[0].Processed(); got != f.stream.position(0, 4_999) {
			f.Errorf("the checkpoint is %s", got)
		}
	})
}

// Unavailable does not count as an attempt, named or not, wrapped or not.
func TestUnavailable(t *testing.T) {
	onEachForm(t, 1, func(f *fleet, form form) {
		f.stream.put("x", "a", "poison", "b")
		p := newPoison(f, func(r *runnel.Record, attempt int) error {
			switch {
			case r.PartitionKey != "poison" || attempt > 30:
				return nil
			case attempt%3 == 0:
				return fmt.Errorf("wrapped: %w", consumer.Unavailable(errCut))
			default:
				return consumer.Unavailable(errCut)
			}
		})
		f.start("w1", form.into(p.do), onError(consumer.ErrorPolicy{
			Attempts: 1, Then: consumer.ThenSkip,
		}))
		p.awaitCount(30*failover, 3)
		p.wantCount(3, 0)
		if n := len(f.happened(consumer.EventFailed)); n != 30 {
			f.Errorf("%d failures were reported", n)
		}
	})
	if consumer.Unavailable(nil) != nil || consumer.FailedAt(&runnel.Record{}, nil) != nil {
		t.Error("a nil error became one")
	}
}

// A batch whose handler names no record is halved until the record that fails is alone.
func TestBatchIsHalved(t *testing.T) {
	for _, poisons := range [][]string{{"poison"}, {"key-0"}, {"key-4999", "poison", "key-7"}} {
		bubble(t, 1, func(f *fleet) {
			f.stream.put("x", keys(5_000)...)
			f.stream.put("x", "poison")
			f.stream.put("x", keys(4_999)[1:]...)
			p := newPoison(f, nil)
			var calls atomic.Int64
			unnamed := func(c *consumer.Config) {
				c.Handler = func(_ context.Context, b *consumer.Batch) error {
					calls.Add(1)
					for i := range b.Records {
						for _, key := range poisons {
							if b.Records[i].PartitionKey == key {
								return errCut
							}
						}
						p.note(&b.Records[i])
					}
					return nil
				}
			}
			f.start("w1", unnamed, onError(consumer.ErrorPolicy{
				Attempts: 3, Then: consumer.ThenSkip, DeadLetter: p.keep,
			}))
			f.await(20*failover, "the end", func() bool {
				return len(f.leases()) > 0 && f.leases()[0].Processed() == f.stream.last(0, 0)
			})
			want := len(poisons)
			for _, key := range poisons {
				if strings.HasPrefix(key, "key-") && key != "key-0" && key != "key-4999" {
					want++ // it is there twice
				}
			}
			if n, _ := p.count(); n != 9_999-want || len(p.kept()) != want {
				f.Errorf("%d records, %d dead, want %d", n, len(p.kept()), want)
			}
			for _, failure := range p.kept() {
				if len(failure.Records) != 1 || failure.Attempts != 3 {
					f.Errorf("dead: %d records, %d attempts", len(failure.Records),
						failure.Attempts)
				}
			}
			if n := calls.Load(); n > int64(2+40*want) {
				f.Errorf("%d calls", n)
			}
		})
	}
}

// A Processor whose error names no record loses the batch as a whole: it is not halved.
func TestProcessorsBatchIsSkipped(t *testing.T) {
	bubble(t, 1, func(f *fleet) {
		f.stream.put("a", "1", "2", "3", "4")
		d := newDiary(f)
		p := newPoison(f, nil)
		d.process = func(ctx context.Context, b *consumer.Batch, c *consumer.Checkpointer) error {
			if len(b.Records) == 0 || string(b.Records[0].Data) == "b" {
				return nil
			}
			if len(b.Records) == 4 {
				_ = c.Checkpoint(ctx, b.Records[0].Position)
			}
			return errCut
		}
		f.start("w1", d.into, onError(consumer.ErrorPolicy{
			Attempts: 2, Then: consumer.ThenSkip, DeadLetter: p.keep,
		}))
		<-time.After(failover)
		f.stream.put("b", "5")
		d.awaitLine("w1 s b")
		dead := p.kept()
		if len(dead) != 1 || len(dead[0].Records) != 3 || dead[0].Attempts != 2 {
			t.Errorf("dead: %+v", dead)
		}
		if d.count("a a a a") != 1 || d.count("s a a a") != 2 {
			t.Errorf("%v", d.lines)
		}
	})
}

// A shard changes hands during the back-off and during DeadLetter: the next owner tries anew, and
// nothing is passed over.
func TestHandOverWhileFailing(t *testing.T) {
	for _, during := range []string{"back-off", "DeadLetter"} {
		onEachForm(t, 1, func(f *fleet, form form) {
			f.stream.put("x", "a", "poison", "b")
			p := newPoison(f, isPoison(never))
			policy := consumer.ErrorPolicy{
				Attempts: 2, Backoff: time.Minute, Then: consumer.ThenSkip,
			}
			if during == "DeadLetter" {
				policy.Backoff = time.Millisecond
				policy.DeadLetter = func(context.Context, consumer.Failure) error { return errCut }
			}
			w := f.start("w1", form.into(p.do), onError(policy))
			<-time.After(failover)
			began := time.Now()
			f.mustStop(w)
			if took := time.Since(began); took > 2*time.Second {
				f.Errorf("%s: the stop took %s", during, took)
			}
			if got := f.leases()[0].Processed(); f.stream.position(0, 0).Less(got) {
				f.Errorf("%s: the checkpoint is %s", during, got)
			}
			tries := p.tried("poison")
			policy.Backoff, policy.DeadLetter = time.Millisecond, p.keep
			f.start("w2", form.into(p.do), onError(policy))
			p.awaitCount(3*failover, 2)
			<-time.After(failover)
			if n := p.tried("poison") - tries; n != 2 || len(p.kept()) != 1 {
				f.Errorf("%s: %d attempts of the next owner, %d dead", during, n, len(p.kept()))
			}
		})
	}
}

// An error of a handler ends no worker, even one that would end it if it came from the stream.
func TestHandlersErrorEndsNoWorker(t *testing.T) {
	onEachForm(t, 1, func(f *fleet, form form) {
		f.stream.put("x", "poison", "b")
		p := newPoison(f, func(r *runnel.Record, attempt int) error {
			if r.PartitionKey == "poison" && attempt < 3 {
				return fmt.Errorf("another stream: %w", consumer.ErrStreamGone)
			}
			return nil
		})
		f.start("w1", form.into(p.do))
		p.awaitCount(failover, 2)
	})
}

// A handler may fail with a sink's error, since it may write to one. The shard stops as with any
// other error.
func TestHandlersErrorIsNotTheWorkersSinks(t *testing.T) {
	onEachForm(t, 1, func(f *fleet, form form) {
		f.stream.put("x", "poison")
		moved := &sink.MovedError{To: sink.Committed{End: runnel.End()}}
		p := newPoison(f, func(*runnel.Record, int) error { return moved })
		f.start("w1", form.into(p.do), onError(consumer.ErrorPolicy{Attempts: 1}))
		f.await(failover, "the stop", func() bool {
			return len(f.happened(consumer.EventShardStopped)) == 1
		})
		<-time.After(failover)
		p.wantCount(0, 0)
	})
}
