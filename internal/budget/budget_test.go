package budget

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// longest is the greatest length of a body in these tests.
const longest = 1 << 20

// cutting is closed when its share is cut off.
type cutting chan struct{}

func (c cutting) Cut() { close(c) }

func open(b *Budget, cut Cutter) *Share {
	s := new(Share)
	b.Open(s, cut)
	return s
}

// read reads a body at a rate, in bytes a second, and holds it for a time.
func read(ctx context.Context, i *Budget, length, rate int, hold time.Duration) error {
	cut := make(cutting)
	body := open(i, cut)
	defer body.Release()
	body.Begin()
	for size := Free; ; size *= 2 {
		arrives := time.Duration(min(size, length)/2) * time.Second / time.Duration(rate)
		select {
		case <-time.After(arrives):
		case <-cut:
			return ErrCut
		}
		body.Moved(min(size, length))
		if size >= length {
			break
		}
		if err := body.Grow(ctx, min(size, length-size)); err != nil {
			return err
		}
	}
	body.Settle()
	<-time.After(hold)
	return nil
}

// Bodies that are larger than the memory in sum become whole in the end, and never use more.
func TestBodiesNeverWaitForEachOther(t *testing.T) {
	for _, limit := range []int64{longest / 2, longest, 2 * longest, 3 * longest, 20 * longest} {
		synctest.Test(t, func(t *testing.T) {
			i := New(limit, 2*longest)
			ctx, stop := context.WithCancel(t.Context())
			go func() {
				for ctx.Err() == nil {
					if used := i.Used(); used > max(limit, longest) {
						t.Errorf("%d bytes are in use, want %d at most", used, limit)
					}
					<-time.After(time.Millisecond)
				}
			}()
			var bodies sync.WaitGroup
			for range 300 {
				bodies.Go(func() {
					<-time.After(rand.N(time.Second))
					length := Free + rand.IntN(longest-Free)
					if err := read(ctx, i, length, 100<<20, rand.N(50*time.Millisecond)); err != nil {
						t.Errorf("%d bytes: %v", length, err)
					}
				})
			}
			bodies.Wait()
			stop()
			if i.Used() != 0 || len(i.open) != 0 {
				t.Errorf("%d bytes and %d bodies are left", i.Used(), len(i.open))
			}
			<-time.After(time.Second) // the watcher ends
		})
	}
}

// Slow bodies that hold all of the memory make room for a quick one, which gets it after the
// thousand that came before. Without cuts that takes seven minutes.
func TestSlowBodiesMakeRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := New(10*longest, 2*longest)
		var bodies sync.WaitGroup
		cut := 0
		var mu sync.Mutex
		for range 1000 {
			bodies.Go(func() {
				err := read(t.Context(), i, longest, 33<<10, 0)
				mu.Lock()
				defer mu.Unlock()
				if errors.Is(err, ErrCut) {
					cut++
				}
			})
		}
		<-time.After(10 * time.Second)
		start := time.Now()
		if err := read(t.Context(), i, longest, 100<<20, 0); err != nil {
			t.Error(err)
		}
		if took := time.Since(start); took > 2*time.Minute {
			t.Errorf("a quick body has waited for %v", took)
		}
		bodies.Wait()
		if cut == 0 {
			t.Error("no slow body was cut off")
		}
	})
}

// A body is as slow as it likes as long as no other one waits.
func TestSlowBodyAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		if err := read(t.Context(), New(2*longest, 2*longest), longest, 100, 0); err != nil {
			t.Error(err)
		}
	})
}

func TestGrowEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := New(longest, 2*longest)
		first := open(i, make(cutting))
		if err := first.Grow(t.Context(), longest); err != nil {
			t.Fatal(err)
		}
		first.Settle()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		second := open(i, make(cutting))
		if err := second.Grow(ctx, 1); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
		second.Release()
		first.Release()
		if i.Used() != 0 || len(i.open) != 0 {
			t.Errorf("%d bytes and %d bodies are left", i.Used(), len(i.open))
		}
	})
}

// A share that waits for longer than MaxWait gets an error, and the others its place.
func TestMaxWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := New(longest, longest)
		i.MaxWait = 3 * time.Second
		ctx := t.Context()
		first, late, next := open(i, make(cutting)), open(i, make(cutting)), open(i, make(cutting))
		if err := first.Grow(ctx, longest); err != nil {
			t.Fatal(err)
		}
		first.Settle()
		began := time.Now()
		err := late.Grow(ctx, longest)
		if took := time.Since(began); !errors.Is(err, ErrLate) || took != i.MaxWait {
			t.Errorf("%v after %v, want %v after %v", err, took, ErrLate, i.MaxWait)
		}
		late.Release()
		time.AfterFunc(2*time.Second, first.Release)
		if err := next.Grow(ctx, longest); err != nil {
			t.Errorf("a share that got its memory in time: %v", err)
		}
		next.Release()
		if i.Used() != 0 {
			t.Errorf("%d bytes are in use", i.Used())
		}
	})
}

// A share that does not wait gets memory that is free, and overtakes no other one.
func TestTryGrow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := New(100, 0)
		first, waits, tries := open(i, make(cutting)), open(i, make(cutting)), open(i, make(cutting))
		if got, ok := first.TryGrowUpTo(20, 1000); !ok || got != 25 || i.Used() != 25 {
			t.Errorf("%d bytes, %v; want a quarter of all", got, ok)
		}
		if got, ok := tries.TryGrowUpTo(76, 76); ok || got != 0 {
			t.Errorf("%d bytes of 75, %v", got, ok)
		}
		first.Settle()
		go func() {
			if err := waits.Grow(t.Context(), 80); err != nil {
				t.Error(err)
			}
		}()
		synctest.Wait()
		waits2 := open(i, make(cutting))
		go func() { _ = waits2.Grow(t.Context(), 80) }()
		synctest.Wait()
		if _, ok := tries.TryGrowUpTo(1, 1); ok {
			t.Error("it has overtaken one that waits")
		}
		first.Release()
		waits.Release()
		waits2.Release()
		synctest.Wait()
		if got, ok := tries.TryGrowUpTo(1, 1); !ok || got != 1 {
			t.Errorf("%d bytes, %v", got, ok)
		}
		tries.Release()
		if i.Used() != 0 {
			t.Errorf("%d bytes are in use", i.Used())
		}
	})
}

func TestTooManyBodies(t *testing.T) {
	i := New(100*longest, 2*longest)
	for range mostShares {
		if err := open(i, make(cutting)).Grow(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
	}
	if err := open(i, make(cutting)).Grow(t.Context(), 1); !errors.Is(err, ErrFull) {
		t.Errorf("one more: %v", err)
	}
	var none *Share
	if err := none.Grow(t.Context(), 1<<30); err != nil || none.IsCut() {
		t.Errorf("without a bound: %v", err)
	}
	none.Settle()
	none.Release()
}

// The system's buffers take much at first, and then nothing more. The connection is cut off as soon
// as one that never moved.
func TestRecentProgressCounts(t *testing.T) {
	for name, trickle := range map[string]int{"nothing": 0, "a little": 33 << 10} {
		synctest.Test(t, func(t *testing.T) {
			b := New(longest, 0)
			cut := make(cutting)
			slow := open(b, cut)
			if err := slow.Grow(t.Context(), longest); err != nil {
				t.Fatal(err)
			}
			slow.Begin()
			moved := 6 << 20
			slow.Moved(moved)
			go func() {
				for range 10 {
					<-time.After(time.Second)
					if moved += trickle; trickle > 0 {
						slow.Moved(moved)
					}
				}
			}()
			<-time.After(5 * time.Second)
			began := time.Now()
			go func() {
				<-cut
				slow.Release()
			}()
			quick := open(b, make(cutting))
			if err := quick.Grow(t.Context(), longest); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(began); took > 2*patience {
				t.Errorf("%s: another share has waited for %v", name, took)
			}
			quick.Release()
			<-time.After(10 * time.Second)
		})
	}
}

// A connection of more than 64 KiB/s is not cut off, though it was slower before.
func TestSlowBeforeIsForgiven(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(longest, 0)
		cut := make(cutting)
		share := open(b, cut)
		if err := share.Grow(t.Context(), longest); err != nil {
			t.Fatal(err)
		}
		share.Begin()
		<-time.After(20 * time.Second)
		other := open(b, make(cutting))
		go func() {
			<-time.After(3 * time.Second)
			_ = other.Grow(t.Context(), 1)
		}()
		for n := range 60 {
			share.Moved((n + 1) * 16 << 10)
			<-time.After(time.Second / 5)
		}
		select {
		case <-cut:
			t.Error("it is cut off")
		default:
		}
		share.Release()
	})
}

// BenchmarkRefusal is the time of a share that comes while too many others are under way.
func BenchmarkRefusal(b *testing.B) {
	of := New(longest, 0)
	for range mostShares {
		s := open(of, make(cutting))
		s.Take(Free + 1)
		s.Begin()
	}
	for b.Loop() {
		s := open(of, make(cutting))
		if err := s.Grow(b.Context(), 1); !errors.Is(err, ErrFull) {
			b.Fatal(err)
		}
	}
}

// A share that has just got its memory is not slow by its wait for it, although its goroutine has
// not run since.
func TestAWaitEndsWithItsMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(longest, 0)
		first := open(b, make(cutting))
		first.Take(longest)
		quick := open(b, make(cutting))
		quick.Begin()
		quick.Moved(Free)
		var grown sync.WaitGroup
		grown.Go(func() {
			if err := quick.Grow(t.Context(), longest); err != nil {
				t.Error(err)
			}
		})
		<-time.After(5 * recent)
		b.mu.Lock()
		first.set(0)
		b.cutSlowest()
		b.mu.Unlock()
		grown.Wait()
		first.Release()
		quick.Release()
	})
}
