package pause

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runnel-stream/runnel/internal/bootclock"
)

// age does to a watch as a pause of the process would: its last tick is older by that much.
func (w *Watch) age(length time.Duration) { w.tick.Add(-int64(length)) }

func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := New()
		var lengths []time.Duration
		hooked := 0
		remove := w.OnPause(func() { hooked++ })
		w.Start(func(length time.Duration) { lengths = append(lengths, length) })
		w.Start(nil) // does nothing
		defer w.Stop()
		check := func(count uint64, want error) {
			t.Helper()
			if err := w.Check(count, bootclock.Now()); !errors.Is(err, want) {
				t.Errorf("Check(%d) = %v, want %v", count, err, want)
			}
		}
		time.Sleep(time.Hour)
		check(0, nil)
		if w.Limit() != 5*time.Second || w.Count() != 0 {
			t.Fatalf("limit %v, %d pauses", w.Limit(), w.Count())
		}
		w.age(4 * time.Second) // not long enough
		check(0, nil)
		time.Sleep(time.Minute)
		synctest.Wait()
		if w.Count() != 0 {
			t.Errorf("a tick that is 4 s late counts as a pause")
		}

		w.age(11 * time.Minute)
		check(0, ErrPaused) // before any tick
		time.Sleep(w.every)
		synctest.Wait()
		check(0, ErrPaused) // a call of before the pause
		check(1, nil)
		if len(lengths) != 1 || lengths[0].Round(time.Minute) != 11*time.Minute || hooked != 1 {
			t.Errorf("told of pauses of %v, and %d times", lengths, hooked)
		}
		remove()
		w.age(time.Minute)
		time.Sleep(w.every)
		synctest.Wait()
		check(1, ErrPaused)
		check(2, nil)
		if hooked != 1 {
			t.Error("a hook that was removed is called")
		}
	})
}

// A process that was paused between New and Start had connections waiting then too.
func TestStartedLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := New()
		time.Sleep(time.Minute)
		if err := w.Check(0, bootclock.Now()); !errors.Is(err, ErrPaused) {
			t.Errorf("before the first tick: %v", err)
		}
		w.Start(func(time.Duration) { t.Error("told of a pause") })
		if w.Count() != 1 || w.Check(1, bootclock.Now()) != nil {
			t.Errorf("%d pauses at the start", w.Count())
		}
		w.Stop()
		w.Stop()
		time.Sleep(time.Minute)
		if err := w.Check(0, bootclock.Now()); err != nil {
			t.Errorf("after Stop: %v", err)
		}
	})
}

func BenchmarkCheck(b *testing.B) {
	w := New()
	w.Start(func(time.Duration) {})
	defer w.Stop()
	for b.Loop() {
		if err := w.Check(0, bootclock.Now()); err != nil {
			b.Fatal(err)
		}
	}
}
