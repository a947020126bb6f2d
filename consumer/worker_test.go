package consumer_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/consumer"
	"github.com/runnel-stream/runnel/internal/seam"
	"github.com/runnel-stream/runnel/lease"
)

// Three workers share eight shards, and each record is delivered.
func TestFleetShares(t *testing.T) {
	bubble(t, 8, func(f *fleet) {
		f.stream.put("a", keys(100)...)
		for _, id := range []string{"w1", "w2", "w3"} {
			f.start(id)
		}
		f.await(time.Second, "100 records", func() bool { n, _ := f.delivered(); return n == 100 })
		f.await(8*failover, "a fair share", func() bool {
			return slices.Equal(f.spread(), []int{2, 3, 3})
		})
		f.stream.put("b", keys(100)...)
		f.await(time.Second, "200 records", func() bool { n, _ := f.delivered(); return n == 200 })
		// It stays so: no lease moves without a cause.
		stolen := len(f.happened(consumer.EventLeaseStolen))
		<-time.After(time.Hour)
		if n := len(f.happened(consumer.EventLeaseStolen)); n != stolen {
			t.Errorf("%d leases were stolen in an hour of calm", n-stolen)
		}
		if lost := f.happened(consumer.EventLeaseLost); len(lost) != stolen {
			t.Errorf("%d leases were lost, %d stolen", len(lost), stolen)
		}
	})
}

// A killed worker's leases are taken when the failover time is over, not before, and no record is
// lost.
func TestKilledWorkerIsReplaced(t *testing.T) {
	bubble(t, 4, func(f *fleet) {
		f.start("w1")
		f.start("w2")
		f.await(4*failover, "a fair share", func() bool { return slices.Equal(f.spread(), []int{2, 2}) })
		<-time.After(failover) // the old owners know that their leases are stolen
		f.stream.put("a", keys(50)...)
		f.await(time.Second, "50 records", func() bool { n, _ := f.delivered(); return n == 50 })
		<-time.After(failover * 6 / 10) // checkpoints
		f.workers["w1"].kill()
		if err := <-f.workers["w1"].err; !errors.Is(err, seam.ErrKilled) {
			t.Fatalf("killed: %v", err)
		}
		f.stream.put("b", keys(50)...)
		took := f.await(2*failover, "100 records", func() bool { n, _ := f.delivered(); return n == 100 })
		if took < failover/2 {
			t.Errorf("taken over after %s: before the failover time", took)
		}
		if expired := f.happened(consumer.EventLeaseExpired); len(expired) != 2 || expired[0].Other != "w1" {
			t.Errorf("expired: %+v", expired)
		}
		if _, again := f.delivered(); again != 0 {
			t.Errorf("%d records again, although all had been checkpointed", again)
		}
	})
}

// A worker that is stopped hands over: its successor starts at once and repeats no record.
func TestStopHandsOver(t *testing.T) {
	bubble(t, 4, func(f *fleet) {
		f.start("w1")
		f.await(time.Second, "all leases", func() bool { return f.loads()["w1"] == 4 })
		f.stream.put("a", keys(50)...)
		f.await(time.Second, "50 records", func() bool { n, _ := f.delivered(); return n == 50 })
		f.workers["w1"].stop()
		if err := <-f.workers["w1"].err; err != nil {
			t.Fatal(err)
		}
		if loads := f.loads(); loads[""] != 4 {
			t.Fatalf("not released: %v", loads)
		}
		f.stream.put("b", keys(50)...)
		f.start("w2")
		f.await(time.Second, "100 records", func() bool { n, _ := f.delivered(); return n == 100 })
		if _, again := f.delivered(); again != 0 {
			t.Errorf("%d records again", again)
		}
	})
}

// A handler that takes minutes does not lose its lease, and when it returns its iterator has
// expired: reading goes on where it was.
func TestSlowHandlerKeepsItsLease(t *testing.T) {
	bubble(t, 1, func(f *fleet) {
		slow := true
		f.start("w1", func(c *consumer.Config) {
			c.Handler = func(ctx context.Context, b *consumer.Batch) error {
				if slow {
					slow = false
					select {
					case <-ctx.Done():
						return ctx.Err()
					case <-time.After(7 * time.Minute):
					}
				}
				return f.handle(ctx, b)
			}
		})
		f.stream.put("a", keys(10)...)
		<-time.After(time.Second)
		f.start("w2")
		f.stream.put("b", keys(10)...)
		<-time.After(time.Minute)
		f.stream.put("c", keys(10)...)
		f.await(8*time.Minute, "30 records", func() bool { n, _ := f.delivered(); return n == 30 })
		if _, again := f.delivered(); again != 0 || len(f.happened(consumer.EventLeaseLost)) > 0 {
			t.Errorf("%d records again; lost %v", again, f.happened(consumer.EventLeaseLost))
		}
	})
}

// A worker that cannot reach the table stops its handlers before another worker may take its
// leases. Batches that it finished late are not checkpointed.
func TestZombieCannotCheckpoint(t *testing.T) {
	bubble(t, 1, func(f *fleet) {
		var cancelled time.Time
		var cause error
		release := make(chan struct{})
		f.start("w1", func(c *consumer.Config) {
			c.Handler = func(ctx context.Context, b *consumer.Batch) error {
				f.record(b.Records)
				<-ctx.Done()
				cancelled, cause = time.Now(), context.Cause(ctx)
				<-release // ignores its context, as a paused process does
				return nil
			}
		})
		f.await(time.Second, "w1", func() bool { return f.loads()["w1"] == 1 })
		f.start("w2")
		<-time.After(failover)
		f.stream.put("a", keys(10)...)
		f.await(time.Second, "10 records", func() bool { n, _ := f.delivered(); return n == 10 })
		mend := f.workers["w1"].link.cut()
		f.await(3*failover, "w2 to take over", func() bool { return f.loads()["w2"] == 1 })
		taken := f.happened(consumer.EventLeaseExpired)[0].Time
		if cancelled.IsZero() || !cancelled.Before(taken) {
			t.Errorf("cancelled at %s, taken over at %s", cancelled, taken)
		}
		if !errors.Is(cause, consumer.ErrLeaseExpired) {
			t.Errorf("cancelled because of %v", cause)
		}
		f.stream.put("b", keys(10)...)
		f.await(failover, "20 records", func() bool { n, _ := f.delivered(); return n == 20 })
		<-time.After(5 * time.Second)
		before := f.leases()[0]
		mend()
		close(release)
		<-time.After(failover)
		after := f.leases()[0]
		if after.Owner != "w2" || after.Checkpoint != before.Checkpoint ||
			after.Processed().Sequence == runnel.Start().Sequence {
			t.Errorf("before %+v, after %+v", before, after)
		}
		for _, e := range f.happened(consumer.EventCommitted) {
			if e.Worker == "w1" {
				t.Errorf("the zombie's late return counts: %+v", e)
			}
		}
	})
}

// A failing handler gets the same batch again, whole and with growing pauses. No record and no
// checkpoint passes it, and a panic counts as a failure.
func TestHandlerErrors(t *testing.T) {
	bubble(t, 1, func(f *fleet) {
		calls := 0
		var first []runnel.Record
		f.start("w1", func(c *consumer.Config) {
			c.Handler = func(ctx context.Context, b *consumer.Batch) error {
				if calls++; calls == 1 {
					first = b.Records
				}
				if calls < 6 {
					if !slices.EqualFunc(first, b.Records, func(a, b runnel.Record) bool {
						return a.Position == b.Position
					}) {
						t.Errorf("call %d: another batch", calls)
					}
					if calls == 3 {
						panic("on purpose")
					}
					return errors.New("on purpose")
				}
				return f.handle(ctx, b)
			}
		})
		f.stream.put("a", keys(10)...)
		<-time.After(200 * time.Millisecond)
		f.stream.put("b", keys(10)...)
		if got := f.leases()[0].Processed(); got != runnel.Start() {
			t.Errorf("checkpoint %s although nothing was processed", got)
		}
		f.await(10*time.Second, "20 records", func() bool { n, _ := f.delivered(); return n == 20 })
		if n := len(f.happened(consumer.EventFailed)); n != 5 {
			t.Errorf("%d failures reported, want 5", n)
		}
	})
}

// A handler that always fails shows in the default logger, at once and then now and then.
func TestFailingHandlerIsLogged(t *testing.T) {
	bubble(t, 1, func(f *fleet) {
		var lines syncBuffer
		before := slog.Default()
		slog.SetDefault(slog.New(slog.NewTextHandler(&lines, nil)))
		defer slog.SetDefault(before)
		f.stream.put("a", keys(1)...)
		m := f.start("a", func(c *consumer.Config) {
			c.Logger = nil
			c.Handler = func(context.Context, *consumer.Batch) error { return errors.New("on purpose") }
		})
		attempts := func() int { return len(f.happened(consumer.EventFailed)) }
		f.await(time.Minute, "a first failure", func() bool { return attempts() == 1 })
		if got := strings.Count(lines.String(), "on purpose"); got != 1 {
			t.Errorf("%d lines after the first failure, want 1: %s", got, lines.String())
		}
		time.Sleep(time.Minute)
		m.stop()
		<-m.err
		got := strings.Count(lines.String(), "on purpose")
		if got < 4 || got > 7 || attempts() <= got {
			t.Errorf("%d lines of %d attempts in a minute, want about one every 10 s", got, attempts())
		}
	})
}

// syncBuffer is a buffer for several goroutines.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// A stopped worker does not wait for a handler that goes on failing.
func TestStopWithFailingHandler(t *testing.T) {
	bubble(t, 1, func(f *fleet) {
		f.start("w1", func(c *consumer.Config) {
			c.Handler = func(context.Context, *consumer.Batch) error { return errors.New("no") }
		})
		f.stream.put("a", keys(10)...)
		<-time.After(10 * time.Second)
		began := time.Now()
		f.workers["w1"].stop()
		if err := <-f.workers["w1"].err; err != nil || time.Since(began) > time.Second {
			t.Errorf("stopped after %s: %v", time.Since(began), err)
		}
		if l := f.leases()[0]; l.Owner != "" || l.Processed() != runnel.Start() {
			t.Errorf("handed over as %+v", l)
		}
	})
}

// A handler that outlives the shutdown time is cancelled, and the lease is given back.
func TestStopCancelsHandlerInTheEnd(t *testing.T) {
	bubble(t, 1, func(f *fleet) {
		f.start("w1", func(c *consumer.Config) {
			c.Handler = func(ctx context.Context, _ *consumer.Batch) error {
				<-ctx.Done()
				return ctx.Err()
			}
		})
		f.stream.put("a", keys(10)...)
		<-time.After(10 * time.Second)
		began := time.Now()
		f.workers["w1"].stop()
		if err := <-f.workers["w1"].err; err != nil || time.Since(began) != 30*time.Second {
			t.Errorf("stopped after %s: %v", time.Since(began), err)
		}
		if l := f.leases()[0]; l.Owner != "" || l.Processed() != runnel.Start() {
			t.Errorf("handed over as %+v", l)
		}
	})
}

// An application begun at LATEST misses no record that arrives after its first start. The first
// owner dies before it has processed any record, and the shards are split meanwhile.
func TestLatestIsResolvedOnce(t *testing.T) {
	for _, noFilter := range []bool{false, true} {
		bubble(t, 2, func(f *fleet) {
			f.stream.noFilter = noFilter
			latest := func(c *consumer.Config) { c.From = runnel.FromLatest() }
			f.stream.put("before", keys(20)...)
			<-time.After(time.Second)
			m := f.start("w1", latest, func(c *consumer.Config) {
				c.Handler = func(ctx context.Context, _ *consumer.Batch) error {
					<-ctx.Done()
					return ctx.Err()
				}
			})
			<-time.After(time.Second)
			f.stream.put("after", keys(20)...)
			f.stream.split(0)
			f.stream.put("after", keys(20)...)
			m.kill()
			<-m.err
			<-time.After(time.Hour)
			f.stream.put("after", keys(20)...)
			var got []string
			f.start("w2", latest, func(c *consumer.Config) {
				c.Handler = func(_ context.Context, b *consumer.Batch) error {
					f.mu.Lock()
					defer f.mu.Unlock()
					for _, r := range b.Records {
						got = append(got, string(r.Data))
					}
					return nil
				}
			})
			f.await(4*failover, "60 records", func() bool {
				f.mu.Lock()
				defer f.mu.Unlock()
				return len(got) >= 60
			})
			if len(got) != 60 || slices.Contains(got, "before") {
				t.Errorf("%d records: %v", len(got), got)
			}
		})
	}
}

// At LATEST the stream's clock decides where the application begins. A worker whose clock is wrong,
// by a little or by hours, misses no record that arrives after its start, before it reads the
// shard, and gets none that arrived a second before its start.
func TestLatestByTheStreamsClock(t *testing.T) {
	for _, ahead := range []time.Duration{
		0, -900 * time.Millisecond, 900 * time.Millisecond, -3 * time.Hour, 3 * time.Hour,
	} {
		t.Run(ahead.String(), func(t *testing.T) {
			bubble(t, 1, func(f *fleet) {
				f.stream.ahead, f.stream.dated = ahead, true
				server := time.Now().Add(ahead)
				<-time.After(server.Truncate(time.Second).Add(5050 * time.Millisecond).Sub(server))
				f.stream.put("before", keys(5)...)
				<-time.After(1100 * time.Millisecond)
				var got []string
				var once sync.Once
				f.stream.fault = func(op string, _ runnel.ShardID) error {
					if op == "GetShardIterator" {
						once.Do(func() { f.stream.put("after", keys(5)...) })
					}
					return nil
				}
				f.start("w1", func(c *consumer.Config) {
					c.From = runnel.FromLatest()
					c.Handler = func(_ context.Context, b *consumer.Batch) error {
						f.mu.Lock()
						defer f.mu.Unlock()
						for _, r := range b.Records {
							got = append(got, string(r.Data))
						}
						return nil
					}
				})
				f.await(failover, "5 records", func() bool {
					f.mu.Lock()
					defer f.mu.Unlock()
					return len(got) >= 5
				})
				if len(got) != 5 || slices.Contains(got, "before") {
					t.Errorf("got %q", got)
				}
			})
		})
	}
}

// At a time, reading begins with the first record that arrived then.
func TestFromTime(t *testing.T) {
	bubble(t, 2, func(f *fleet) {
		f.stream.put("before", keys(20)...)
		<-time.After(time.Minute)
		at := time.Now()
		f.stream.put("after", keys(20)...)
		<-time.After(time.Minute)
		f.stream.merge(0)
		n := 0
		f.start("w1", func(c *consumer.Config) {
			c.From = runnel.FromTime(at)
			c.Once = true
			c.Handler = func(_ context.Context, b *consumer.Batch) error {
				f.mu.Lock()
				defer f.mu.Unlock()
				for _, r := range b.Records {
					if n++; string(r.Data) != "after" {
						t.Errorf("got a record from %s", r.Data)
					}
				}
				return nil
			}
		})
		if err := <-f.workers["w1"].err; err != nil || n != 20 {
			t.Errorf("%d records, %v", n, err)
		}
	})
}

// A table that holds the positions of another stream, or of this one before it was created
// again, is refused, at the start and while running.
func TestRecreatedStreamIsRefused(t *testing.T) {
	bubble(t, 2, func(f *fleet) {
		f.start("w1")
		f.await(time.Second, "all leases", func() bool { return f.loads()["w1"] == 2 })
		f.stream.mu.Lock()
		f.stream.created = f.stream.created.Add(time.Millisecond)
		f.stream.mu.Unlock()
		f.start("w2")
		var refused *lease.StreamError
		if err := <-f.workers["w2"].err; !errors.As(err, &refused) {
			t.Errorf("w2: %v", err)
		}
		if err := <-f.workers["w1"].err; !errors.As(err, &refused) {
			t.Errorf("w1: %v", err)
		}
	})
}

// A stream that does not exist is an error at once, and one that is deleted later as well.
func TestMissingStream(t *testing.T) {
	bubble(t, 1, func(f *fleet) {
		f.start("w1")
		<-time.After(time.Second)
		f.stream.mu.Lock()
		f.stream.gone = true
		f.stream.mu.Unlock()
		f.start("w2")
		for _, id := range []string{"w2", "w1"} {
			if err := <-f.workers[id].err; !errors.Is(err, consumer.ErrStreamGone) {
				t.Errorf("%s: %v", id, err)
			}
		}
	})
}

// A worker that is started before its endpoint waits for it, and not for ever.
func TestStartWaitsForTheEndpoint(t *testing.T) {
	bubble(t, 1, func(f *fleet) {
		up := time.Now().Add(20 * time.Second)
		var down atomic.Bool
		f.stream.fault = func(string, runnel.ShardID) error {
			if time.Now().Before(up) || down.Load() {
				return errCut
			}
			return nil
		}
		f.start("w1")
		f.await(26*time.Second, "a lease", func() bool { return f.loads()["w1"] == 1 })
		down.Store(true)
		began := time.Now()
		f.start("w2")
		if err := <-f.workers["w2"].err; !errors.Is(err, errCut) || time.Since(began) > time.Minute {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
	})
}
