package kinesis

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/runnel-stream/runnel/server/internal/catalogue"
	"github.com/runnel-stream/runnel/server/internal/shardlog"
	"github.com/runnel-stream/runnel/server/internal/wal"
)

// sweeper is the goroutine that sweeps at intervals.
type sweeper struct {
	streams *streams
	shards  *shardlog.Store
	limits  *limiter
	logger  *slog.Logger
	every   time.Duration

	deleted chan struct{} // a deletion has begun
	cancel  context.CancelFunc
	done    sync.WaitGroup
}

// look makes the sweeper sweep once the deletions that have begun end.
func (w *sweeper) look() {
	select {
	case w.deleted <- struct{}{}:
	default:
	}
}

func (w *sweeper) start(ctx context.Context) {
	ctx, w.cancel = context.WithCancel(context.WithoutCancel(ctx))
	w.done.Go(func() {
		ticker := time.NewTicker(w.every)
		defer ticker.Stop()
		soon := time.NewTimer(w.untilGone(0))
		defer soon.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				w.sweep(ctx)
			case <-soon.C:
				w.sweep(ctx)
				soon.Reset(w.untilGone(1)) // what is left now is the ticker's
			case <-w.deleted:
				soon.Reset(w.untilGone(0))
			}
		}
	})
}

// untilGone returns the time until the next deletion ends, of those with at least so many
// milliseconds to go, so that its space is free at once. It is w.every at most, and also if there
// is none.
func (w *sweeper) untilGone(least int64) time.Duration {
	wait, now := w.every, w.streams.clock.read()
	for _, st := range w.streams.all() {
		left := st.Until - now.Elapsed
		if st.Status(now) == catalogue.StatusDeleting && (least == 0 || left >= least) {
			wait = min(wait, time.Duration(max(left, 0))*time.Millisecond)
		}
	}
	return wait
}

func (w *sweeper) stop() {
	if w.cancel != nil {
		w.cancel()
	}
	w.done.Wait()
}

// sweep removes invisible data: deleted streams after the end of their deletion, closed shards with
// expired data, and records past the retention period.
func (w *sweeper) sweep(ctx context.Context) {
	w.limits.throttle.Load().sweep(w.streams.clock.read().Elapsed)
	for _, st := range w.streams.all() {
		err := w.sweepStream(ctx, st.Key())
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			w.logger.WarnContext(ctx, "expired data is still there, the next sweep "+
				"tries again", "stream", st.Name, "error", err)
		}
		if errors.As(err, new(*wal.PoisonedError)) || errors.Is(err, wal.ErrStalled) ||
			errors.Is(err, wal.ErrClosed) {
			return // the log takes nothing now; other errors are those of one shard
		}
	}
}

func (w *sweeper) sweepStream(ctx context.Context, key catalogue.Key) error {
	c := w.streams.catalogue
	var st *catalogue.Stream
	var now moment
	c.Read(func() { st, now = c.Get(key), w.streams.clock.read() })
	if st == nil {
		return nil
	}
	if st.Gone(now) || len(st.Expired(now)) > 0 {
		by := w.streams.log.SequenceFreeing
		err := w.streams.changeBy(ctx, by, changeSize, func(tx *wal.Tx, now moment) error {
			if st = c.Get(key); st == nil {
				return nil
			}
			if st.Gone(now) {
				return c.Drop(tx, st, now)
			}
			return c.Expire(tx, st, now)
		})
		if err != nil {
			return fmt.Errorf("remove what has expired: %w", err)
		}
	}
	if st == nil || st.Gone(now) {
		return nil
	}
	return w.trim(ctx, st, now)
}

// trim removes the records that are older than the stream's retention period, unless nothing
// expires at the moment.
func (w *sweeper) trim(ctx context.Context, st *catalogue.Stream, now moment) error {
	var first error
	for _, sh := range st.Shards {
		err := w.shards.Trim(ctx, sh.Log, now.Horizon(st.RetentionMs()))
		if err != nil && !errors.Is(err, shardlog.ErrDeleted) && first == nil {
			first = fmt.Errorf("trim shard %s: %w", sh.ID(), err)
		}
	}
	return first
}
