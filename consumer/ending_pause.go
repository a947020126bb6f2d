package consumer

import (
	"context"
	"errors"
	"sync"

	"github.com/runnel-stream/runnel/internal/retry"
	"github.com/runnel-stream/runnel/lease"
)

// obeyPauses keeps a parent paused that is read under this holding's lease, as long as this shard
// is paused, or the parent's own row says so. No holder writes that row, so it is read: at once,
// and in each half of the failover time. end ends that.
func (h *holding) obeyPauses(ctx context.Context, parent *holding) (end func(), err error) {
	byRow, err := h.isRowPaused(ctx, parent)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	var following sync.WaitGroup
	above, changed := h.control.isPaused()
	parent.pausedAs(above || byRow)
	following.Go(func() {
		for ctx.Err() == nil {
			if retry.WaitOr(ctx, h.run.cfg.Failover/2, changed) {
				if now, err := h.isRowPaused(ctx, parent); err == nil {
					byRow = now // or else it stays as it was
				}
			}
			above, changed = h.control.isPaused()
			parent.pausedAs(above || byRow)
		}
	})
	return func() { cancel(); following.Wait() }, nil
}

// isRowPaused reads the parent's row. There is none where the application began after the parent.
func (h *holding) isRowPaused(ctx context.Context, parent *holding) (bool, error) {
	l, err := h.run.table.Get(ctx, parent.first.Key)
	if errors.Is(err, lease.ErrLeaseNotFound) || errors.Is(err, lease.ErrUnreadableRow) {
		return false, nil
	}
	return l.Paused, err
}

// pausedAs pauses or resumes a parent that is read under its child's lease.
func (h *holding) pausedAs(paused bool) {
	const what = "a parent that is read under its child's lease is "
	h.pauseFor(paused, what+"paused: its lease row says so, or the child is paused",
		what+"no longer paused")
}
