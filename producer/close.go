package producer

import (
	"context"
	"fmt"
)

// Flush waits until every record that was taken before it has its result, and its callback has
// returned. Nothing lingers meanwhile. Whether a record was delivered is in its result. If ctx
// ends first, Flush returns an error that wraps the context's cause; nothing is lost by that.
func (p *Producer) Flush(ctx context.Context) error {
	done := p.flush(false)
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	}
	p.mu.Lock()
	p.mu.core.forget(done)
	records, _ := p.mu.core.unsettled()
	p.mu.Unlock()
	return fmt.Errorf("flush the producer of stream %s, %d records without a result: %w",
		p.cfg.Stream, records, context.Cause(ctx))
}

// flush returns a channel that is closed when everything taken so far was reported; closing
// tells that nothing more is to be taken.
func (p *Producer) flush(closing bool) chan struct{} {
	done := make(chan struct{})
	p.mu.Lock()
	p.mu.closed = p.mu.closed || closing
	if p.mu.stopped {
		close(done)
	} else {
		p.mu.core.flush(done)
	}
	p.mu.Unlock()
	signal(p.deliverNow)
	signal(p.scheduleNow)
	return done
}

// Close takes no more records and waits until all that were taken have their results, then
// ends the producer's goroutines. After it returns no callback and no hook runs. It waits for units
// that are to be looked up too, which begins two Config.Horizons after their last attempt.
//
// If ctx ends first, Close cuts the calls in flight and reports every record that is left with
// ErrClosed, with ErrUnknown where an attempt had no answer; it then returns an error that
// says how many these were and wraps the context's cause. A Journal is told nothing of them: they
// are open, for Config.Resume. Close may be called again, and from
// several goroutines: each waits for the end, and the first context to end cuts.
func (p *Producer) Close(ctx context.Context) error {
	done := p.flush(true)
	p.close(ErrClosed)
	var err error
	select {
	case <-done:
	case <-ctx.Done():
		err = p.abort(ctx)
		<-done
	}
	p.mu.Lock()
	p.mu.halted = true
	p.mu.Unlock()
	p.end(ErrClosed) // all have landed; a listing that nobody waits for any more is cut
	p.calls.Wait()   // which may still be in a hook
	p.stopOnce.Do(func() {
		close(p.stop)
	})
	p.loops.Wait()
	return err
}

// abort cuts the calls and settles what is left.
func (p *Producer) abort(ctx context.Context) error {
	p.mu.Lock()
	p.mu.halted = true
	p.mu.Unlock()
	p.end(fmt.Errorf("%w before the call was answered", ErrClosed))
	p.calls.Wait()
	p.mu.Lock()
	records, unknown := p.mu.core.unsettled()
	p.mu.core.abandon()
	p.mu.Unlock()
	signal(p.deliverNow)
	if records == 0 {
		return nil
	}
	return fmt.Errorf("close the producer of stream %s: %d records were not delivered, "+
		"%d of them may be in the stream: %w", p.cfg.Stream, records, unknown, context.Cause(ctx))
}
