package rewind

import (
	"context"
	"fmt"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/lease"
)

// Apply carries out the changes as a worker of that name. It first holds every lease itself, so no
// other worker reads on between two changes; then it writes the positions, and then it gives the
// leases back. States of filters are dropped.
//
// It may be cut off anywhere. The leases that it holds expire then, as those of any worker, and the
// same changes, planned anew, complete it. An error before the first position leaves
// the positions and gives the leases back.
func Apply(
	ctx context.Context, table *lease.Table, origin runnel.From, worker string, changes []Change,
) error {
	held := make([]lease.Lease, len(changes))
	err := each(ctx, changes, func(ctx context.Context, i int) (err error) {
		held[i], err = hold(ctx, table, origin, worker, changes[i])
		return err
	})
	if err != nil {
		release(context.WithoutCancel(ctx), table, held)
		return err
	}
	err = each(ctx, changes, func(ctx context.Context, i int) (err error) {
		held[i], err = write(ctx, table, held[i], changes[i])
		return err
	})
	if err != nil {
		return err
	}
	return each(ctx, changes, func(ctx context.Context, i int) error {
		if held[i].Owner == "" {
			return nil
		}
		_, err := table.Release(ctx, held[i], lease.Mark{})
		return err
	})
}

// each does something for every change, several at a time, and begins no more after an error. It
// does not cancel the calls under way: a take without an answer would leave a lease behind.
func each(
	ctx context.Context, changes []Change, do func(ctx context.Context, i int) error,
) error {
	var group errgroup.Group
	var failed atomic.Bool
	group.SetLimit(parallel)
	for i, c := range changes {
		group.Go(func() error {
			if failed.Load() {
				return nil
			}
			if err := do(ctx, i); err != nil {
				failed.Store(true)
				return fmt.Errorf("shard %s: %w", c.Shard.ID, err)
			}
			return nil
		})
	}
	return group.Wait()
}

func hold(
	ctx context.Context, table *lease.Table, origin runnel.From, worker string, c Change,
) (lease.Lease, error) {
	if !c.Create {
		return table.Take(ctx, c.Lease, lease.Claim{Worker: worker, Origin: origin})
	}
	c.Lease.Owner, c.Lease.Origin = worker, &origin
	l, created, err := table.Create(ctx, c.Lease)
	if err == nil && !created {
		err = lease.ErrLeaseLost
	}
	return l, err
}

// write writes one position. A lease that was created has it already.
func write(
	ctx context.Context, table *lease.Table, held lease.Lease, c Change,
) (after lease.Lease, err error) {
	switch {
	case c.Create:
		return held, nil
	case c.At == runnel.End():
		after, err = table.Finish(ctx, held, lease.Mark{State: []byte{}}, c.Children)
	default:
		after, err = table.Rewind(ctx, held, c.At)
	}
	if err == nil && c.Lease.StateApart() {
		err = table.States().Delete(ctx, held)
	}
	return after, err
}

// release gives leases back, as far as possible: the others expire.
func release(ctx context.Context, table *lease.Table, held []lease.Lease) {
	for _, l := range held {
		if l.Owner != "" {
			_, _ = table.Release(ctx, l, lease.Mark{})
		}
	}
}
