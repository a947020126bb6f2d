package rewind

import (
	"context"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/lease"
)

// plan returns the changes of the leases that are held now, and of the ended ones. A shard that the
// goals lack is younger than they are, and so are all its records.
func (r *seeker) plan(ctx context.Context, leases []lease.Lease) ([]Change, error) {
	shards, err := r.Shards(ctx)
	if err != nil {
		return nil, err
	}
	found := make(map[runnel.ShardID]Goal, len(r.Goals))
	for _, g := range r.Goals {
		found[g.Shard.ID] = g
	}
	goals := make([]Goal, len(shards))
	for i, s := range shards {
		goals[i] = found[s.ID]
		goals[i].Shard = s
	}
	changes := r.Changes(goals, leases)
	r.parents = lineage{}
	for _, s := range shards {
		r.parents[s.ID] = s.Parents
	}
	r.soften(changes, leases)
	return changes, nil
}

// Changes returns the changes that set the leases to the goals, as of now.
func (s Seek) Changes(goals []Goal, leases []lease.Lease) []Change {
	changes := Plan(goals, leases)
	if s.Latest {
		changes = slices.DeleteFunc(changes, func(c Change) bool {
			return !c.Create && !c.Lease.Processed().Less(c.At)
		})
	}
	return changes
}

// soften makes the leases to create begin where the workers would begin, if they would come to
// them: until the positions are written, these leases must change nothing.
func (r *seeker) soften(changes []Change, leases []lease.Lease) {
	unended := map[runnel.ShardID]bool{}
	for _, l := range leases {
		unended[l.Key] = !l.Ended()
	}
	for i, c := range changes {
		if c.Create && r.parents.anyAbove(c.Shard.ID, unended) {
			changes[i].Lease = lease.NewLease(c.Shard, runnel.FromOldest())
		}
	}
}

// lineage has the parents of each shard.
type lineage map[runnel.ShardID][]runnel.ShardID

// anyAbove reports whether an ancestor of the shard is one of these.
func (p lineage) anyAbove(id runnel.ShardID, these map[runnel.ShardID]bool) bool {
	met := map[runnel.ShardID]bool{}
	for queue := p[id]; len(queue) > 0; queue = queue[1:] {
		switch next := queue[0]; {
		case these[next]:
			return true
		case !met[next]:
			met[next] = true
			queue = append(slices.Clip(queue), p[next]...)
		}
	}
	return false
}

// depths returns the number of generations above each shard.
func (p lineage) depths() map[runnel.ShardID]int {
	depths := make(map[runnel.ShardID]int, len(p))
	var depth func(runnel.ShardID) int
	depth = func(id runnel.ShardID) int {
		if d, known := depths[id]; known {
			return d
		}
		d := 0
		for _, parent := range p[id] {
			d = max(d, depth(parent)+1)
		}
		depths[id] = d
		return d
	}
	for id := range p {
		depth(id)
	}
	return depths
}

// holdMore holds the ended leases that will be read again, and those that were not there.
func (r *seeker) holdMore(ctx context.Context, changes []Change) error {
	return each(ctx, changes, func(ctx context.Context, i int) error {
		c := changes[i]
		if r.holds(c.Shard.ID) != nil {
			return nil
		}
		if !c.Create {
			_, err := r.take(ctx, c.Lease)
			return err
		}
		sent := time.Now()
		l, err := hold(ctx, r.Table, r.Origin, r.Worker, c)
		if err == nil {
			r.keep(l, sent, true)
		}
		return err
	})
}

// write writes the positions, generation after generation, the youngest first.
func (r *seeker) write(ctx context.Context, changes []Change) error {
	depths := r.parents.depths()
	deepest := 0
	for _, c := range changes {
		deepest = max(deepest, depths[c.Shard.ID])
	}
	for d := deepest; d >= 0; d-- {
		generation := slices.DeleteFunc(slices.Clone(changes), func(c Change) bool {
			return depths[c.Shard.ID] != d
		})
		err := each(ctx, generation, func(ctx context.Context, i int) error {
			return r.writeOne(ctx, generation[i])
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *seeker) writeOne(ctx context.Context, c Change) error {
	h := r.holds(c.Shard.ID)
	if h == nil {
		return lease.ErrLeaseLost
	}
	return r.change(h, func(l lease.Lease) (after lease.Lease, err error) {
		apart := l.StateApart()
		switch {
		case c.At == runnel.End():
			after, err = r.Table.Finish(ctx, l, lease.Mark{State: []byte{}}, c.Children)
			if err == nil {
				h.lost = true // it has no owner any more
				r.forget(l.Key)
			}
		default:
			after, err = r.Table.Rewind(ctx, l, c.At)
		}
		if err == nil && apart {
			err = r.Table.States().Delete(ctx, l)
		}
		return after, err
	})
}

func (r *seeker) forget(id runnel.ShardID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.held, id)
}

// release gives the held leases back. With undo it deletes those that it has created.
func (r *seeker) release(ctx context.Context, undo bool) error {
	return r.eachHeld(func(h *held) error {
		err := r.change(h, func(l lease.Lease) (lease.Lease, error) {
			if undo && h.created {
				return l, r.Table.Delete(ctx, l)
			}
			return r.Table.Release(ctx, l, lease.Mark{})
		})
		h.mu.Lock()
		h.lost = true
		h.mu.Unlock()
		return ignoreLost(err)
	})
}

// eachHeld does something for all held leases, several at a time, and returns the first error.
func (r *seeker) eachHeld(do func(*held) error) error {
	var group errgroup.Group
	group.SetLimit(parallel)
	for _, h := range r.all() {
		group.Go(func() error { return do(h) })
	}
	return group.Wait()
}
