package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/runnel-stream/runnel/consumer"
	"github.com/runnel-stream/runnel/internal/seam"
)

func once(c *consumer.Config) { c.Once = true }

// Once processes all records that are there at the start, children of ended shards included, and
// gives every lease back. It leaves later records.
func TestOnce(t *testing.T) {
	for _, atEndOnly := range []bool{true, false} {
		bubble(t, 3, func(f *fleet) {
			f.stream.atEndOnly = atEndOnly
			f.stream.put("a", keys(50)...)
			<-time.After(time.Second)
			f.stream.split(0)
			f.stream.merge(2)
			f.stream.put("b", keys(50)...)
			<-time.After(time.Second)
			f.stream.split(1)
			f.stream.put("c", keys(50)...)
			began := time.Now()
			f.start("w1", once)
			if err := <-f.workers["w1"].err; err != nil {
				f.Fatal(err)
			}
			if n, again := f.delivered(); n != 150 || again != 0 {
				f.dump()
				f.Errorf("%d delivered, %d again", n, again)
			}
			if took := time.Since(began); took > 2*time.Second {
				f.Errorf("took %s", took)
			}
			for _, l := range f.leases() {
				if l.Owner != "" {
					f.Errorf("not given back: %+v", l)
				}
			}
			// A second run goes on where the first one ended.
			f.stream.put("d", keys(10)...)
			f.start("w2", once)
			if err := <-f.workers["w2"].err; err != nil {
				f.Fatal(err)
			}
			if n, again := f.delivered(); n != 160 || again != 0 {
				f.Errorf("%d delivered, %d again", n, again)
			}
		})
	}
}

// Once ends although records keep coming.
func TestOnceWithAProducer(t *testing.T) {
	bubble(t, 2, func(f *fleet) {
		f.stream.put("a", keys(20)...)
		ctx, cancel := context.WithCancel(f.Context())
		stopped := make(chan struct{})
		go func() {
			defer close(stopped)
			for ctx.Err() == nil {
				f.stream.put("b", keys(30)...)
				<-time.After(time.Millisecond)
			}
		}()
		f.start("w1", once, func(c *consumer.Config) {
			c.MaxRecords = 10
			c.Handler = func(ctx context.Context, b *consumer.Batch) error {
				<-time.After(10 * time.Millisecond) // slower than the producer
				return f.handle(ctx, b)
			}
		})
		select {
		case err := <-f.workers["w1"].err:
			if err != nil {
				f.Error(err)
			}
		case <-time.After(time.Minute):
			f.Error("did not end")
		}
		cancel()
		<-stopped
	})
}

// Several workers with Once end even if some of them die. None ends before all the work is done.
func TestOnceFleet(t *testing.T) {
	for i := range 10 * soak() {
		seed := uint64(i + 1)
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			bubble(t, 4, func(f *fleet) {
				c := &chaos{random: rand.New(rand.NewPCG(seed, 3))}
				puts := 0
				for range 20 {
					puts += len(f.stream.put("a", keys(20)...))
					switch c.pick(4) {
					case 0:
						f.stream.split(c.pick(10))
					case 1:
						f.stream.merge(c.pick(10))
					}
					<-time.After(time.Second)
				}
				s := newChain(&chaos{random: c.random, calm: true}, 50)
				for w := range 3 {
					f.start(fmt.Sprint("w", w), once, intoSink(s), func(cfg *consumer.Config) {
						cfg.MaxRecords = 1 + c.pick(20)
					})
					<-time.After(time.Duration(c.pick(3)) * 10 * time.Millisecond)
				}
				killed := c.pick(4)
				if killed < 3 {
					<-time.After(time.Duration(c.pick(100)) * time.Millisecond)
					f.workers[fmt.Sprint("w", killed)].kill()
				}
				for w := range 3 {
					err := <-f.workers[fmt.Sprint("w", w)].err
					if w == killed && errors.Is(err, seam.ErrKilled) {
						continue
					}
					if err != nil {
						f.Errorf("w%d: %v", w, err)
					}
					if n := s.count(); n != puts {
						f.Errorf("w%d ended when %d of %d records were there", w, n, puts)
					}
				}
				s.check(f)
			})
		})
	}
	t.Logf("soak: %d seeds", 10*soak())
}

// Beside a worker that goes on for ever, Once ends when that one has done the work, and does
// not end before.
func TestOnceBesideOthers(t *testing.T) {
	bubble(t, 2, func(f *fleet) {
		hold := make(chan struct{})
		f.start("w1", func(c *consumer.Config) {
			c.Handler = func(ctx context.Context, b *consumer.Batch) error {
				<-hold
				return f.handle(ctx, b)
			}
		})
		<-time.After(time.Second)
		f.stream.put("a", keys(20)...)
		<-time.After(time.Second)
		f.start("w2", once, func(c *consumer.Config) { c.MaxLeases = 1 })
		select {
		case err := <-f.workers["w2"].err:
			f.Fatalf("ended early: %v", err)
		case <-time.After(time.Minute):
		}
		close(hold)
		select {
		case err := <-f.workers["w2"].err:
			if err != nil {
				f.Error(err)
			}
		case <-time.After(time.Minute):
			f.dump()
			f.Fatal("did not end")
		}
		if n, _ := f.delivered(); n != 20 {
			f.Errorf("%d delivered", n)
		}
	})
}

// Run with Once returns an error if it is interrupted.
func TestOnceInterrupted(t *testing.T) {
	bubble(t, 1, func(f *fleet) {
		f.stream.put("a", keys(20)...)
		m := f.start("w1", once, func(c *consumer.Config) {
			c.Handler = func(context.Context, *consumer.Batch) error { return errCut }
		})
		<-time.After(time.Minute)
		m.stop()
		if err := <-m.err; !errors.Is(err, context.Canceled) {
			f.Errorf("got %v", err)
		}
	})
}
