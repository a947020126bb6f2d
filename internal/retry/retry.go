// Package retry has the waits between attempts: one back-off and one wait for the client half.
package retry

import (
	"context"
	"math/rand/v2"
	"time"
)

// Backoff is an exponential back-off with jitter.
//
// The jitter keeps callers that failed together from coming back together (AWS Architecture Blog,
// "Exponential Backoff And Jitter": the variant "equal jitter", so no wait is close to zero).
type Backoff struct {
	Min, Max time.Duration // of the wait before jitter: after the first failure, and at most
	// Random is the source of the jitter; nil: the process's. A source of its own is for callers
	// that want the same waits in each run.
	Random *rand.Rand
}

// After returns the wait after so many failures in a row, from 1 on: Min, doubled with each failure
// up to Max, less up to a half at random.
func (b Backoff) After(failures int) time.Duration {
	wait := b.Max
	if shift := min(max(failures, 1)-1, 40); b.Min < b.Max>>shift {
		wait = b.Min << shift
	}
	jitter := int64(wait)/2 + 1
	if b.Random != nil {
		return wait - time.Duration(b.Random.Int64N(jitter))
	}
	return wait - time.Duration(rand.Int64N(jitter))
}

// Wait waits after so many failures in a row. It returns the context's cause if that ends first.
func (b Backoff) Wait(ctx context.Context, failures int) error {
	return Wait(ctx, b.After(failures))
}

// Wait waits for a duration, and returns the context's cause if that ends first.
func Wait(ctx context.Context, d time.Duration) error {
	if !WaitOr(ctx, d, nil) {
		return context.Cause(ctx)
	}
	return nil
}

// WaitOr waits for a duration, and returns false if the context ends or stop is closed first. stop
// may be nil.
func WaitOr(ctx context.Context, d time.Duration, stop <-chan struct{}) bool {
	select {
	case <-ctx.Done():
		return false
	case <-stop:
		return false
	default:
	}
	if d <= 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	case <-stop:
		return false
	}
}
