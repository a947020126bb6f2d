package producer

import (
	"context"
	"sync/atomic"
)

// Future is the result to come of one record. It is safe for concurrent use. If the result is an
// error and the program never asks for it, Flush or Close reports it: see UnseenError.
type Future struct {
	done   chan struct{}
	result Result

	looks  atomic.Int64 // calls of Done, and calls of Wait that run or have returned the result
	unseen *unseen      // the producer's
	added  int          // guarded by unseen.mu: the epoch in which it was added; 0: it is not in
}

// Done returns a channel that is closed when the result is there. A call of Done counts as looking
// at the result, so Flush and Close do not report it.
func (f *Future) Done() <-chan struct{} {
	f.look()
	return f.done
}

// Wait waits for the result and returns it, with its Err as the error. If ctx ends first, it
// returns the context's cause; the record is still on its way, and Wait may be called again.
func (f *Future) Wait(ctx context.Context) (Result, error) {
	f.look()
	select {
	case <-f.done:
		return f.result, f.result.Err
	default:
	}
	select {
	case <-f.done:
		return f.result, f.result.Err
	case <-ctx.Done():
	}
	// If the result has come meanwhile, it was not added to the unseen ones, so return it.
	f.looks.Add(-1)
	select {
	case <-f.done:
		f.look()
		return f.result, f.result.Err
	default:
		return Result{}, context.Cause(ctx)
	}
}

// look counts a look at the result, and removes the result from the unseen ones.
func (f *Future) look() {
	f.looks.Add(1)
	select {
	case <-f.done:
		if f.result.Err != nil && f.unseen != nil {
			f.unseen.saw(f)
		}
	default:
	}
}

// settle sets the result. It does so before the result is added to the unseen ones: a Wait whose
// context ends at that moment checks for the result once more after it has uncounted its look.
func (f *Future) settle(result Result) {
	f.result = result
	close(f.done)
}
