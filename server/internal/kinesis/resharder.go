package kinesis

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/runnel-stream/runnel/server/internal/catalogue"
	"github.com/runnel-stream/runnel/server/internal/wal"
)

// resharder is the goroutine that carries out pending steps when they are due. The log holds the
// steps, so the next start goes on with them after a crash.
type resharder struct {
	streams *streams
	logger  *slog.Logger

	planned atomic.Int64  // the shards that the pending steps open
	wake    chan struct{} // of one token
	cancel  context.CancelFunc
	done    sync.WaitGroup
}

const (
	// retryReshard is the pause before a change that the log refused is tried again.
	retryReshard = 100 * time.Millisecond
	// maxReshardBatch bounds the frames of one commit, in bytes: beyond it, no further stream
	// begins.
	maxReshardBatch = 1 << 20
	reshardStepSize = 800 // about the most that a step has in a frame
)

// start runs follow until stop.
func (r *resharder) start(ctx context.Context) {
	ctx, r.cancel = context.WithCancel(context.WithoutCancel(ctx))
	r.done.Go(func() { r.follow(ctx) })
}

func (r *resharder) stop() {
	if r.cancel != nil {
		r.cancel()
	}
	r.done.Wait()
}

// notify signals that a new reshard is pending.
func (r *resharder) notify() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// follow carries out pending steps when they are due, including those from before the
// start.
func (r *resharder) follow(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	failing := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.wake:
		case <-timer.C:
		}
		again, pending, err := r.carryOut(ctx)
		if err != nil && !failing && ctx.Err() == nil {
			r.logger.WarnContext(ctx, "streams stay UPDATING, it is tried again until their "+
				"shards are split and merged", "error", err)
		}
		if failing = err != nil; failing {
			again, pending = retryReshard, true
		}
		if timer.Stop(); pending {
			timer.Reset(again)
		}
	}
}

// carryOut carries out the due steps, and returns once that is durable. It also returns the time
// until the next ones are due, if any are pending.
func (r *resharder) carryOut(ctx context.Context) (again time.Duration, pending bool, err error) {
	c := r.streams.catalogue
	due, size, again, pending := r.pending()
	if len(due) == 0 {
		return again, pending, nil
	}
	err = r.streams.change(ctx, size, func(tx *wal.Tx, now moment) (err error) {
		for _, key := range due {
			if st := c.Get(key); st != nil && st.Due(now) {
				r.planned.Add(-opened(st.Pending))
				err = errors.Join(err, c.Scale(tx, st, st.Pending, now))
			}
		}
		return err
	})
	if err != nil {
		return 0, true, fmt.Errorf("reshard %d streams, %s first: %w", len(due), due[0].Name, err)
	}
	return again, pending, nil
}

// pending returns the streams with due steps, at most as many as are done at once, the
// approximate size of their frames, and when to ask again: at once if there are more.
func (r *resharder) pending() (
	due []catalogue.Key, size int, again time.Duration, pending bool,
) {
	r.streams.catalogue.Read(func() {
		now, planned := r.streams.clock.read(), int64(0)
		defer func() { r.planned.Store(planned) }()
		for st := range r.streams.catalogue.All() {
			if len(st.Pending) == 0 || st.Phase == catalogue.StatusDeleting {
				continue
			}
			planned += opened(st.Pending)
			wait := time.Duration(max(0, st.Until-now.Elapsed)) * time.Millisecond
			if st.Due(now) && size < maxReshardBatch {
				due = append(due, st.Key())
				size += 4096 + reshardStepSize*len(st.Pending)
				continue
			}
			if !pending || wait < again {
				again, pending = wait, true
			}
		}
	})
	return due, size, again, pending
}
