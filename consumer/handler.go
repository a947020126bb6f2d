package consumer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/retry"
	"github.com/runnel-stream/runnel/sink"
)

// handlerSink makes a sink of a handler. The handler's return is the commit. The lease row's
// checkpoint is the only record of the progress.
type handlerSink struct {
	handler Handler
	onGap   func(runnel.ShardID, sink.Gap) error
	failed  func(runnel.ShardID, error)
}

func (h *handlerSink) Open(_ context.Context, shard sink.Shard) (sink.Writer, error) {
	return &handlerWriter{
		handlerSink: h, shard: shard, committed: sink.Committed{End: shard.Checkpoint},
	}, nil
}

type handlerWriter struct {
	*handlerSink
	shard     sink.Shard
	committed sink.Committed
	behind    time.Duration               // of the records that the next Write takes
	gap       *sink.Gap                   // before the next record
	stopping  <-chan struct{}             // closed once no further attempt is allowed
	ensure    func(context.Context) error // before each attempt
}

func (w *handlerWriter) Committed() sink.Committed { return w.committed }

// errStopping ends the attempts of a failing handler when the worker is being stopped.
var errStopping = errors.New("the worker is being stopped")

// Write calls the handler until it succeeds.
func (w *handlerWriter) Write(ctx context.Context, batch sink.Batch) (sink.Committed, error) {
	records, through := batch.Records, batch.Through
	if batch.Gap != nil && w.onGap != nil {
		if err := w.onGap(w.shard.ID, *batch.Gap); err != nil {
			return w.committed, err
		}
	}
	if w.gap = joined(w.gap, batch.Gap); w.gap != nil && len(records) == 0 {
		// The handler has not received the gap, so the checkpoint does not pass it.
		return w.committed, nil
	}
	handed := &Batch{
		Stream: w.shard.Stream, ShardID: w.shard.ID, Records: records, Behind: w.behind,
		Gap: w.gap,
	}
	for attempt := 1; len(records) > 0; attempt++ {
		if err := w.ensure(ctx); err != nil {
			return w.committed, err
		}
		err := call(ctx, w.handler, handed)
		if ctx.Err() != nil { // the lease may be gone, so the handler's result does not count
			return w.committed, context.Cause(ctx)
		}
		if err == nil {
			break
		}
		w.failed(w.shard.ID, fmt.Errorf("the handler failed on %d records after %s: %w",
			len(records), w.committed.End, err))
		if !retry.WaitOr(ctx, backoff(attempt, longestBackoff), w.stopping) {
			if ctx.Err() != nil {
				return w.committed, context.Cause(ctx)
			}
			return w.committed, errStopping
		}
	}
	w.committed.End, w.gap = through, nil
	return w.committed, nil
}

// joined joins two gaps into one. The second is the later one, and no record was delivered between
// them.
func joined(first, second *sink.Gap) *sink.Gap {
	if first == nil || second == nil {
		return cmp.Or(first, second)
	}
	return &sink.Gap{After: first.After, Before: second.Before, Reason: second.Reason}
}

// call turns a handler's panic into an error: one bad record must not end the process, which may
// hold many shards.
func call(ctx context.Context, handler Handler, batch *Batch) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return handler(ctx, batch)
}

func (w *handlerWriter) Flush(context.Context) (sink.Committed, error) { return w.committed, nil }

func (w *handlerWriter) End(context.Context) (sink.Committed, error) {
	return sink.Committed{End: runnel.End()}, nil
}

func (w *handlerWriter) Close() error { return nil }
