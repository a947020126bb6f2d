package consumer

import (
	"context"
	"errors"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/lease"
)

// allEnded reports whether the shards, and so all their ancestors, have been processed to their
// ends. It must hold before any record of their child is delivered.
//
// If a shard has a lease, the lease says whether it has ended. A shard without a lease has one of
// two states. It may still be to come: its parent is being read and will create the lease. Or it is
// over: the application began after it, so it is never read, or it ended long ago and its lease was
// deleted. It is still to come if one of its ancestors has a lease that has not ended. (The KCL
// takes a missing lease for an ended one. That lets the child of a merge overtake a parent that was
// itself just split off.)
func (r *run) allEnded(ctx context.Context, ids []runnel.ShardID) (bool, error) {
	a := &ancestors{run: r, known: map[runnel.ShardID]bool{}}
	for _, id := range ids {
		if ended, err := a.ended(ctx, id); !ended || err != nil {
			return false, err
		}
	}
	return true, nil
}

type ancestors struct {
	run     *run
	known   map[runnel.ShardID]bool             // shards found to have ended
	parents map[runnel.ShardID][]runnel.ShardID // of the listed shards; nil until needed
}

func (a *ancestors) ended(ctx context.Context, id runnel.ShardID) (bool, error) {
	if a.known[id] {
		return true, nil
	}
	ended, err := a.look(ctx, id)
	if err == nil && ended {
		a.known[id] = true
	}
	return ended, err
}

func (a *ancestors) look(ctx context.Context, id runnel.ShardID) (bool, error) {
	l, err := a.run.table.Get(ctx, id)
	if errors.Is(err, lease.ErrUnreadableRow) {
		a.run.reportRow(string(id), err)
		return false, nil
	}
	if !errors.Is(err, lease.ErrLeaseNotFound) {
		return err == nil && l.Ended(), err
	}
	if err := a.list(ctx); err != nil {
		return false, err
	}
	for _, parent := range a.parents[id] {
		if ended, err := a.ended(ctx, parent); !ended || err != nil {
			return false, err
		}
	}
	if len(a.parents[id]) == 0 {
		return true, nil
	}
	// A parent may have ended since the first look, and created the lease before that.
	l, err = a.run.table.Get(ctx, id)
	if errors.Is(err, lease.ErrLeaseNotFound) {
		return true, nil
	}
	return err == nil && l.Ended(), err
}

// list reads the stream's shards anew: the shard in question is older than now.
func (a *ancestors) list(ctx context.Context) error {
	if a.parents != nil {
		return nil
	}
	shards, err := a.run.shards.Shards(ctx, 0)
	if err != nil {
		return err
	}
	a.parents = make(map[runnel.ShardID][]runnel.ShardID, len(shards))
	for _, s := range shards {
		a.parents[s.ID] = s.Parents
	}
	return nil
}
