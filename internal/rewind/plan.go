package rewind

import (
	"slices"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/shardmap"
	"github.com/runnel-stream/runnel/lease"
)

// Change is the change of one lease.
type Change struct {
	Goal
	// Lease is the lease as it was read, or the one to create.
	Lease  lease.Lease
	Create bool
	// Children are the shard's, if the lease is to end.
	Children []runnel.ShardID
}

// Plan returns the changes that set the leases to the goals, in the order of the goals. It is pure.
//
// A lease without a goal stays: the stream no longer has its shard. A lease is created where no
// worker would create it at the right place: workers create leases of children at the ends of
// their parents, from the first record on.
func Plan(goals []Goal, leases []lease.Lease) []Change {
	byKey := lease.ByKey(leases)
	at := make(map[runnel.ShardID]runnel.Position, len(goals))
	shards := make([]runnel.Shard, len(goals))
	for i, g := range goals {
		at[g.Shard.ID], shards[i] = g.At, g.Shard
	}
	isRead := func(id runnel.ShardID) bool {
		goal, listed := at[id]
		return listed && goal != runnel.End()
	}
	var changes []Change
	for _, g := range goals {
		l, there := byKey[g.Shard.ID]
		c := Change{Goal: g, Lease: l, Create: !there}
		switch {
		case !there && g.At == runnel.End(),
			!there && g.At == runnel.Start() && slices.ContainsFunc(g.Shard.Parents, isRead),
			there && g.At == runnel.End() && l.Ended():
			continue
		case !there:
			c.Lease = lease.NewLease(g.Shard, runnel.FromOldest())
			if g.At != runnel.Start() {
				c.Lease.Checkpoint = g.At
			}
		case g.At == runnel.End():
			for _, child := range shardmap.ChildrenOf(shards, g.Shard.ID) {
				c.Children = append(c.Children, child.ID)
			}
		}
		changes = append(changes, c)
	}
	return changes
}
