package producer

import (
	"context"
	"errors"
	"fmt"
)

// Flush waits until every record that was taken before the call has its result and its callback has
// returned. No call lingers meanwhile. Flush does not fail because a record was not delivered; the
// record's result has that error.
//
// Flush returns an *UnseenError if records were not delivered and no code has looked at their
// results. Each such record is reported once, by the next Flush or Close that returns. If the
// stream has refused the caller of a producer with a Journal, Flush returns a *HaltedError. If ctx
// ends first, Flush returns an error that wraps the context's cause; the records stay on their way.
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

// verdict returns the error of Flush or Close about records that have their results.
func (p *Producer) verdict(operation string) error {
	unseen := p.unseen.take(p.cfg.Stream)
	if unseen != nil {
		unseen = fmt.Errorf("%s the producer of stream %s: %w", operation, p.cfg.Stream, unseen)
	}
	return errors.Join(p.refused(), unseen)
}

// flush returns a channel that is closed when all records taken so far have been reported. With
// closing, the producer takes no more records.
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

// Close takes no more records, waits until all that were taken have their results, and ends the
// producer's goroutines. After it returns, no callback and no hook runs. It also waits for units
// that are to be looked up, which begins 2H after their last attempt.
//
// If ctx ends first, Close cancels the calls in flight and reports every remaining record with
// ErrClosed, and with ErrMaybeStored if an attempt had no answer. Close then returns an error with
// the number of these records, which wraps the context's cause. The Journal is not called for them:
// they stay open, for Config.Resume. Close may be called again and from several goroutines. Each
// call waits for the end, and the first of their contexts to end cancels the calls.
//
// Like Flush, Close returns an *UnseenError if the program has not looked at the results of
// undelivered records, and a *HaltedError. So a program that checks only the error of Close misses
// no failure.
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
	p.end(ErrClosed) // all calls have landed; this cancels a listing or time request
	p.calls.Wait()   // a call that has landed may still be in a hook
	p.stopOnce.Do(func() {
		close(p.stop)
	})
	p.loops.Wait()
	return errors.Join(err, p.verdict("close"))
}

// abort cancels the calls in flight and settles the remaining records.
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
