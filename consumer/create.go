package consumer

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/lease"
)

// create creates the leases of a plan, parents before children.
func (r *run) create(ctx context.Context, leases []lease.Lease) error {
	if !r.binding.Synced {
		return r.createTogether(ctx, leases)
	}
	for _, l := range leases {
		if _, err := r.createOne(ctx, l); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) createOne(ctx context.Context, l lease.Lease) (created bool, err error) {
	l.Output = r.output
	_, created, err = r.table.Create(ctx, l)
	if errors.Is(err, lease.ErrUnreadableRow) { // created since the list was read
		r.reportRow(string(l.Key), err)
		err = nil
	}
	return created, err
}

// createTogether creates the leases of a new table, with the workers that begin at the same time.
// Each begins somewhere else. One that finds only leases of others reads the table, and goes on
// somewhere else again with those that are still missing. So the workers try each row little more
// than once in all. The order does not matter, since a worker reads no shard before all leases are
// there.
func (r *run) createTogether(ctx context.Context, leases []lease.Lease) error {
	left := rotated(leases)
	for len(left) > 0 {
		batch := left[:min(len(left), takesAtOnce)]
		left = left[len(batch):]
		var created atomic.Bool
		var group errgroup.Group
		for _, l := range batch {
			group.Go(func() error {
				ours, err := r.createOne(ctx, l)
				if ours {
					created.Store(true)
				}
				return err
			})
		}
		if err := group.Wait(); err != nil {
			return err
		}
		if created.Load() || len(left) == 0 {
			continue
		}
		var err error
		if left, err = r.missing(ctx, left); err != nil {
			return err
		}
		left = rotated(left)
	}
	return nil
}

// rotated returns the leases from a random one on, and then those before it.
func rotated(leases []lease.Lease) []lease.Lease {
	if len(leases) == 0 {
		return nil
	}
	start := rand.IntN(len(leases))
	return append(slices.Clone(leases[start:]), leases[:start]...)
}

// missing returns the leases that the table does not have. A row that cannot be read counts as one
// that is there.
func (r *run) missing(ctx context.Context, leases []lease.Lease) ([]lease.Lease, error) {
	found, skipped, err := r.table.Look(ctx)
	if err != nil {
		return nil, err
	}
	r.reportRows(skipped)
	there := make(map[runnel.ShardID]bool, len(found)+len(skipped))
	for _, l := range found {
		there[l.Key] = true
	}
	for _, s := range skipped {
		there[runnel.ShardID(s.Key)] = true
	}
	return slices.DeleteFunc(leases, func(l lease.Lease) bool { return there[l.Key] }), nil
}
