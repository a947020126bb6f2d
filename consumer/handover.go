package consumer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/retry"
	"github.com/runnel-stream/runnel/internal/seam"
	"github.com/runnel-stream/runnel/internal/shardmap"
	"github.com/runnel-stream/runnel/lease"
)

// handOver writes the last checkpoint and gives the lease back, or ends it. The keeper has stopped,
// so this goroutine now owns the row.
func (h *holding) handOver(ctx context.Context, how ending) ending {
	cause := context.Cause(ctx)
	if errors.Is(cause, errShutdown) {
		// The handler or the sink took too long to stop. The commits before that are handed over
		// all the same.
		ctx, cause, how = context.WithoutCancel(ctx), nil, stopped
	}
	var err error
	switch {
	case cause != nil:
		err = cause
	case how == finished:
		err = h.keeper.settle(ctx, func(ctx context.Context, l lease.Lease) (lease.Lease, error) {
			return h.run.table.Finish(ctx, l, h.keeper.endToken(), h.children)
		})
	default:
		err = h.keeper.settle(ctx, h.run.table.Release)
	}
	switch {
	case errors.Is(err, seam.ErrKilled):
		return dropped
	case err != nil:
		h.event(Event{Kind: EventLeaseLost, Err: err})
		return dropped
	case how == finished:
		h.event(Event{Kind: EventShardEnded, Children: h.children})
	default:
		if how == caughtUp {
			h.event(Event{Kind: EventCaughtUp})
		}
		h.event(Event{Kind: EventLeaseReleased})
	}
	return how
}

// createChildren creates the leases of the shard's children, before its own row says SHARD_END. It
// tries until it succeeds or the lease is lost. A child that can be read once this row says
// SHARD_END is created with this worker as its owner, so that it need not wait to be found.
func (h *holding) createChildren(ctx context.Context, children []runnel.Shard) {
	for attempt := 1; ctx.Err() == nil; attempt++ {
		err := h.tryChildren(ctx, children)
		if err == nil {
			return
		}
		if ctx.Err() == nil {
			h.run.failed(h.first.Key, err)
		}
		retry.WaitOr(ctx, backoff(attempt, h.run.cfg.Failover/4), nil)
	}
}

var errNoChildren = errors.New("the shard has ended, and the stream lists no shard that came " +
	"from it")

func (h *holding) tryChildren(ctx context.Context, children []runnel.Shard) error {
	if len(children) == 0 { // the sink knew of the end, or the server named no children
		all, err := h.run.shards.Shards(ctx, 0)
		if err != nil {
			return err
		}
		children = shardmap.ChildrenOf(all, h.first.Key)
		if len(children) == 0 && !h.forgotten(all) {
			return errNoChildren
		}
	}
	h.children = nil
	if h.atEnd != nil {
		h.run.ends.leave(h.first.Key, h.atEnd, idsOf(children))
	}
	for _, child := range children {
		if err := h.createChild(ctx, child); err != nil {
			return err
		}
		h.children = append(h.children, child.ID)
	}
	return nil
}

func idsOf(shards []runnel.Shard) []runnel.ShardID {
	ids := make([]runnel.ShardID, len(shards))
	for i, s := range shards {
		ids[i] = s.ID
	}
	return ids
}

// forgotten reports whether the stream no longer lists the shard. Its children may then be gone as
// well, and the audit finds the ones that are left.
func (h *holding) forgotten(all []runnel.Shard) bool {
	for _, s := range all {
		if s.ID == h.first.Key {
			return false
		}
	}
	return len(all) > 0
}

func (h *holding) createChild(ctx context.Context, child runnel.Shard) error {
	startable := h.run.cfg.MaxLeases == 0 && !h.run.isStopping() && h.run.once.wants(child.ID)
	if startable {
		others := slices.DeleteFunc(slices.Clone(child.Parents), func(id runnel.ShardID) bool {
			return id == h.first.Key
		})
		var err error
		if startable, err = h.run.allEnded(ctx, others); err != nil {
			return fmt.Errorf("look at the other parent of %s: %w", child.ID, err)
		}
	}
	l := newLease(child, runnel.FromOldest())
	l.Complete = h.endComplete
	if startable {
		l.Owner = h.run.cfg.WorkerID
	}
	sent := time.Now()
	stands, created, err := h.run.table.Create(ctx, l)
	if errors.Is(err, lease.ErrUnreadableRow) {
		h.run.reportRow(string(child.ID), err)
		return nil
	}
	if err != nil {
		return err
	}
	if !created && startable && stands.Owner == "" && !stands.Ended() {
		// The other parent's reader created it, when this shard was not finished yet.
		sent = time.Now()
		if stands, err = h.run.table.Take(ctx, stands, h.run.cfg.WorkerID); err == nil {
			created = true
		} else if !errors.Is(err, lease.ErrLeaseLost) {
			return err
		}
	}
	if created && startable {
		h.adopted = append(h.adopted, adoption{lease: stands, sent: sent})
	}
	return nil
}

// newLease returns the lease of a new shard.
func newLease(s runnel.Shard, origin runnel.From) lease.Lease {
	r := s.Range
	return lease.Lease{
		Key: s.ID, Parents: s.Parents, Range: &r, From: origin.Time(),
		Checkpoint: runnel.Position{Sequence: origin.Word()},
	}
}
