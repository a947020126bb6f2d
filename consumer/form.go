package consumer

import (
	"context"
	"errors"
	"fmt"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/seam"
	"github.com/runnel-stream/runnel/sink"
)

// form is one of the four ways in which user code takes a shard's records: a sink, or a handler of
// one of three forms. The deliverer, one goroutine, calls its methods.
type form interface {
	// take takes the next page. It may return before the page's records have been processed.
	take(ctx context.Context, p *page) error
	// commit passes on the position up to which all records have been processed, and reports
	// whether none is left. An error ends the reading.
	commit(ctx context.Context) (drained bool, err error)
	// wake is signalled when there is something to commit between two calls; nil if there never is.
	wake() <-chan struct{}
	// flush finishes the records in work and commits, since the shard is to be handed over.
	flush(ctx context.Context) error
	// end commits the end of the shard. All that was taken has been processed.
	end(ctx context.Context) error
	// close ends the form. Its calls have returned when it returns.
	close(ctx context.Context, why StopReason) error
}

// idler is a form that is called when no record has come for idleInterval.
type idler interface {
	idle(ctx context.Context) error
}

// still is a form that has something to commit after its calls alone.
type still struct{}

func (still) wake() <-chan struct{} { return nil }

// newForm makes the form of the worker's handler. p gets the positions that it commits by itself.
func (h *holding) newForm(ctx context.Context, at runnel.Position, p *progress) (form, error) {
	cfg := &h.run.cfg
	c := caller{of: h, policy: cfg.OnError}
	switch {
	case cfg.Record != nil:
		return newRecordForm(ctx, c, at, p), nil
	case cfg.NewProcessor != nil:
		f, err := newProcessorForm(ctx, c, at, p)
		if f == nil {
			return nil, err
		}
		return f, err
	default:
		return &batchForm{caller: c, committed: at, progress: p}, nil
	}
}

// sinkForm passes pages to a sink's writer.
type sinkForm struct {
	still
	of       *holding
	progress *progress
	writer   sink.Writer
	mirror   *mirror // of the filter; nil if doubles are delivered
	now      sink.Committed
}

func (f *sinkForm) commit(context.Context) (bool, error) { return true, f.progress.commit(f.now) }

// take passes a page on. A page without records is passed, too, so that the writer may commit by
// age and its position moves beyond dropped records.
func (f *sinkForm) take(ctx context.Context, p *page) error {
	batch := sink.Batch{Records: p.records, Through: p.through, Gap: p.gap}
	if err := f.mirror.batch(&batch, p); err != nil {
		return err
	}
	if err := f.of.keeper.ensure(ctx); err != nil {
		return err
	}
	call := f.of.calls.begin()
	c, err := f.writer.Write(ctx, batch)
	f.of.calls.end(call)
	if err != nil {
		return fmt.Errorf("write to the sink: %w", err)
	}
	f.now = c
	f.of.settled(p)
	return nil
}

func (f *sinkForm) flush(ctx context.Context) error {
	return f.call(ctx, "flush", f.writer.Flush)
}

func (f *sinkForm) end(ctx context.Context) error { return f.call(ctx, "end", f.writer.End) }

func (f *sinkForm) call(
	ctx context.Context, what string, do func(context.Context) (sink.Committed, error),
) error {
	c, err := do(ctx)
	if err != nil {
		return fmt.Errorf("%s the sink's writer: %w", what, err)
	}
	f.now = c
	return f.progress.commit(c)
}

func (f *sinkForm) close(context.Context, StopReason) error {
	if err := f.writer.Close(); err != nil {
		return fmt.Errorf("close the sink: %w", err)
	}
	return nil
}

// reason returns why the reading of a shard ends, for a Processor. ctx is the shard's, and session
// that of the reading.
func (h *holding) reason(ctx, session context.Context, how ending, err error) StopReason {
	switch {
	case errors.Is(context.Cause(ctx), seam.ErrKilled):
		return killed
	case ctx.Err() != nil && !cutShort(ctx), errors.Is(err, ErrLeaseExpired):
		return StopLost
	case errors.Is(context.Cause(session), errSought):
		return StopSought
	case err == nil && how == finished:
		return StopEnded
	case h.run.isStopping() || !h.isStopping():
		return StopStopped // the worker, or the shard by its ErrorPolicy
	default:
		return StopPassed
	}
}
