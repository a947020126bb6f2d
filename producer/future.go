package producer

import (
	"context"
	"sync/atomic"
)

// Future is the result to come of one record. It is safe for concurrent use. A result that is an
// error and that is never asked for is in the error of Flush or Close: see UnseenError.
type Future struct {
	done   chan struct{}
	result Result

	looks  atomic.Int64 // calls of Wait under way or returned with the result, and of Done
	unseen *unseen      // the producer's
	added  int          // guarded by unseen.mu: when it was added; 0: it is not in
}

// Done returns a channel that is closed when the result is there. Flush and Close then take the
// result for one that the caller looks at.
func (f *Future) Done() <-chan struct{} {
	f.look()
	return f.done
}

// Wait waits for the result and returns it with its Err. If ctx ends first it returns the
// context's cause: the record is then still on its way, and Wait may be called again.
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
	// The result may have come meanwhile. It is not among the unseen then, so it is returned.
	f.looks.Add(-1)
	select {
	case <-f.done:
		f.look()
		return f.result, f.result.Err
	default:
		return Result{}, context.Cause(ctx)
	}
}

// look notes that the result is asked for.
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

// settle sets the result, before it is added to the unseen ones: if the context of a Wait ends at
// that moment, Wait looks once more after it has taken its look back.
func (f *Future) settle(result Result) {
	f.result = result
	close(f.done)
}
