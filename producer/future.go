package producer

import "context"

// Future is the result to come of one record. It is safe for concurrent use.
type Future struct {
	done   chan struct{}
	result Result
}

// Done returns a channel that is closed when the result is there.
func (f *Future) Done() <-chan struct{} { return f.done }

// Wait waits for the result and returns it with its Err. If ctx ends first it returns the
// context's cause: the record is then still on its way, and Wait may be called again.
func (f *Future) Wait(ctx context.Context) (Result, error) {
	select {
	case <-f.done:
		return f.result, f.result.Err
	default:
	}
	select {
	case <-f.done:
		return f.result, f.result.Err
	case <-ctx.Done():
		return Result{}, context.Cause(ctx)
	}
}

func (f *Future) settle(result Result) {
	f.result = result
	close(f.done)
}
