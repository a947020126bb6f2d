package producer

import (
	"context"
	"errors"
	"fmt"
)

// Flush waits until every record that was taken before it has its result, and its callback has
// returned. Nothing lingers meanwhile. Whether a record was delivered is in its result.
//
// Flush returns an *UnseenError if records were not delivered and no code has looked at their
// results: each such record is in the error of one Flush or Close, the next one that returns. If
// the stream has refused the caller of a producer with a Journal it returns a *HaltedError. If ctx
// ends first, Flush returns an error that wraps the context's cause; nothing is lost by that.
func (p *Producer) Flush(ctx context.Context) error {
	done := p.flush(false)
	select {
	case <-done:
		return p.verdict("flush")
	case <-ctx.Done():
	}
	p.mu.Lock()
	p.mu.core.ledger.forget(done)
	records, _ := p.mu.core.ledger.unsettled()
	p.mu.Unlock()
	return fmt.Errorf("flush the producer of stream %s, %d records without a result: %w",
		p.cfg.Stream, records, context.Cause(ctx))
}

// verdict returns the error of Flush and Close for the records that have their results.
func (p *Producer) verdict(operation string) error {
	unseen := p.unseen.take(p.cfg.Stream)
	if unseen != nil {
		unseen = fmt.Errorf("%s the producer of stream %s: %w", operation, p.cfg.Stream, unseen)
	}
	return errors.Join(p.refused(), unseen)
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
		p.mu.core.ledger.flush(done)
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
// ErrClosed, with ErrMaybeStored where an attempt had no answer; it then returns an error that
// says how many these were and wraps the context's cause. A Journal is told nothing of them: they
// are open, for Config.Resume. Close may be called again, and from
// several goroutines: each waits for the end, and the first context to end cuts.
//
// Like Flush, Close returns an *UnseenError for undelivered records with results that no
// code has looked at, and a *HaltedError; so a program that only checks the error of Close
// misses no failure.
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
	return errors.Join(err, p.verdict("close"))
}

// abort cuts the calls and settles what is left.
func (p *Producer) abort(ctx context.Context) error {
	p.mu.Lock()
	p.mu.halted = true
	p.mu.Unlock()
	p.end(fmt.Errorf("%w before the call was answered", ErrClosed))
	p.calls.Wait()
	p.mu.Lock()
	records, unknown := p.abandon()
	p.mu.Unlock()
	signal(p.deliverNow)
	if records == 0 {
		return nil
	}
	return fmt.Errorf("close the producer of stream %s: %d records were not delivered, "+
		"%d of them may be in the stream: %w", p.cfg.Stream, records, unknown, context.Cause(ctx))
}
