package retry_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runnel-stream/runnel/internal/retry"
)

func TestBackoffDoublesUpToItsMaximum(t *testing.T) {
	b := retry.Backoff{Min: 50 * time.Millisecond, Max: time.Second}
	for failures, ms := range map[int]int{
		-1: 50, 0: 50, 1: 50, 2: 100, 3: 200, 5: 800, 6: 1000, 7: 1000, 64: 1000, 1 << 30: 1000,
	} {
		most := time.Duration(ms) * time.Millisecond
		low, high := most, time.Duration(0)
		for range 2000 {
			wait := b.After(failures)
			low, high = min(low, wait), max(high, wait)
		}
		if low < most/2 || high > most || low > most*6/10 || high < most*9/10 {
			t.Errorf("after %d failures: waits of %v to %v, want %v to %v", failures, low, high,
				most/2, most)
		}
	}
}

func TestBackoffOfASource(t *testing.T) {
	waits := func() (all []time.Duration) {
		b := retry.Backoff{
			Min: time.Millisecond, Max: time.Hour, Random: rand.New(rand.NewPCG(1, 2)),
		}
		for failures := range 50 {
			all = append(all, b.After(failures))
		}
		return all
	}
	for i, wait := range waits() {
		if again := waits()[i]; again != wait {
			t.Fatalf("wait %d is %v and then %v", i, wait, again)
		}
	}
}

// Each end counts before the duration, even a duration of 0; without one the whole duration passes.
func TestWaitOr(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		over, cancel := context.WithCancel(t.Context())
		cancel()
		closed, later := make(chan struct{}), make(chan struct{})
		close(closed)
		time.AfterFunc(time.Second, func() { close(later) })
		for _, c := range []struct {
			name string
			ctx  context.Context
			d    time.Duration
			stop chan struct{}
			want bool
			took time.Duration
		}{
			{"the context has ended", over, 0, nil, false, 0},
			{"stop is closed", t.Context(), 0, closed, false, 0},
			{"stop closes", t.Context(), time.Minute, later, false, time.Second},
			{"no stop", t.Context(), time.Minute, nil, true, time.Minute},
			{"no wait", t.Context(), -1, nil, true, 0},
		} {
			began := time.Now()
			got := retry.WaitOr(c.ctx, c.d, c.stop)
			if took := time.Since(began); got != c.want || took != c.took {
				t.Errorf("%s: %v after %v, want %v after %v", c.name, got, took, c.want, c.took)
			}
		}
	})
}

// A maximum below the minimum, and durations of zero, make no wait negative and nothing panic.
func TestBackoffOfOddBounds(t *testing.T) {
	for _, b := range []retry.Backoff{
		{},
		{Min: time.Second},
		{Min: time.Second, Max: time.Millisecond},
		{Max: time.Second},
		{Min: 1, Max: 1<<63 - 1},
	} {
		for failures := range 100 {
			if wait := b.After(failures); wait < 0 || wait > b.Max {
				t.Errorf("%+v: %v after %d failures", b, wait, failures)
			}
		}
	}
}

func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		if err := retry.Wait(t.Context(), time.Minute); err != nil || time.Since(began) != time.Minute {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		stop := errors.New("stop")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, stop)
		defer cancel()
		began = time.Now()
		err := retry.Backoff{Min: time.Hour, Max: time.Hour}.Wait(ctx, 1)
		if !errors.Is(err, stop) || time.Since(began) != time.Second {
			t.Errorf("%v after %v, want the context's cause after 1s", err, time.Since(began))
		}
		if err := retry.Wait(ctx, 0); !errors.Is(err, stop) {
			t.Errorf("%v from a context that has ended, want its cause", err)
		}
	})
}
