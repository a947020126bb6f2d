package kinesis

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/runnel-stream/runnel/server/internal/catalogue"
	"github.com/runnel-stream/runnel/server/internal/wal"
)

// resharder is the goroutine that carries out pending steps when they are due. The log holds the
// steps, so the next start goes on with them after a crash.
type resharder struct {
	wake   chan struct{} // of one token
	cancel context.CancelFunc
	done   sync.WaitGroup
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
func (r *resharder) start(ctx context.Context, follow func(context.Context)) {
	ctx, r.cancel = context.WithCancel(context.WithoutCancel(ctx))
	r.done.Go(func() { follow(ctx) })
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

// followReshards carries out pending steps when they are due, including those from before the
// start.
func (s *Service) followReshards(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	failing := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.resharder.wake:
		case <-timer.C:
		}
		again, pending, err := s.reshardDue(ctx)
		if err != nil && !failing && ctx.Err() == nil {
			s.cfg.Logger.WarnContext(ctx, "streams stay UPDATING, it is tried again until their "+
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

// reshardDue carries out the due steps, and returns once that is durable. It also returns the time
// until the next ones are due, if any are pending.
func (s *Service) reshardDue(ctx context.Context) (again time.Duration, pending bool, err error) {
	c := s.catalogue
	due, size, again, pending := s.pendingReshards()
	if len(due) == 0 {
		return again, pending, nil
	}
	err = s.change(ctx, size, func(tx *wal.Tx, now int64) (err error) {
		for _, key := range due {
			if st := c.Get(key); st != nil && st.Due(now) {
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

// pendingReshards returns the streams with due steps, at most as many as are done at once, the
// approximate size of their frames, and when to ask again: at once if there are more.
func (s *Service) pendingReshards() (
	due []catalogue.Key, size int, again time.Duration, pending bool,
) {
	s.catalogue.Read(func() {
		now := s.clock.read()
		for st := range s.catalogue.All() {
			if len(st.Pending) == 0 || st.Phase == catalogue.StatusDeleting {
				continue
			}
			wait := time.Duration(max(0, st.Until-now)) * time.Millisecond
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
