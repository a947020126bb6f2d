package consumer

import (
	"slices"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/shardmap"
	"github.com/runnel-stream/runnel/lease"
)

// genealogy combines the shards of a stream with the leases of a table: the parents and children of
// each shard, and whether it has a lease. It is pure.
type genealogy struct {
	shards   []shardmap.Shard // in the order of ListShards: parents before children
	byID     map[runnel.ShardID]shardmap.Shard
	children map[runnel.ShardID][]runnel.ShardID
	leases   map[runnel.ShardID]lease.Lease
}

func newGenealogy(leases []lease.Lease, shards []shardmap.Shard) *genealogy {
	g := &genealogy{
		shards: shards, leases: lease.ByKey(leases),
		byID:     make(map[runnel.ShardID]shardmap.Shard, len(shards)),
		children: map[runnel.ShardID][]runnel.ShardID{},
	}
	for _, s := range shards {
		g.byID[s.ID] = s
		for _, parent := range s.Parents {
			g.children[parent] = append(g.children[parent], s.ID)
		}
	}
	return g
}

func (g *genealogy) leased(id runnel.ShardID) bool {
	_, ok := g.leases[id]
	return ok
}

// any reports whether yes holds for a relative of the shard. It finds them by stepping from one
// relative to the next, and does not ask the shard itself.
func (g *genealogy) any(
	id runnel.ShardID, next func(runnel.ShardID) []runnel.ShardID, yes func(runnel.ShardID) bool,
) bool {
	met := map[runnel.ShardID]bool{id: true}
	for queue := next(id); len(queue) > 0; queue = queue[1:] {
		if met[queue[0]] {
			continue
		}
		if yes(queue[0]) {
			return true
		}
		met[queue[0]] = true
		queue = append(slices.Clip(queue), next(queue[0])...)
	}
	return false
}

func (g *genealogy) up(id runnel.ShardID) []runnel.ShardID   { return g.byID[id].Parents }
func (g *genealogy) down(id runnel.ShardID) []runnel.ShardID { return g.children[id] }

// covered reports whether the fleet reads the shard or will come to it: it or an ancestor has a
// lease.
func (g *genealogy) covered(id runnel.ShardID) bool {
	return g.leased(id) || g.any(id, g.up, g.leased)
}

// holes reports whether there is an open shard that the fleet would never read.
func (g *genealogy) holes() bool {
	return slices.ContainsFunc(g.shards, func(s shardmap.Shard) bool {
		return s.Open() && !g.covered(s.ID)
	})
}

// cutOff reports whether the shard has parents, but neither the stream nor the table has any of
// them. They began and ended while no worker read the stream, and the shard's own first records may
// have been removed with them.
func (g *genealogy) cutOff(id runnel.ShardID) bool {
	parents := g.byID[id].Parents
	return len(parents) > 0 && !slices.ContainsFunc(parents, func(id runnel.ShardID) bool {
		_, listed := g.byID[id]
		return listed || g.leased(id)
	})
}

// missing returns the leases to create, parents before children:
//
//   - in a table whose first leases are not all there yet, those of the beginners;
//   - later those of beginners without a lease in their whole line, so that an ended shard whose
//     row was cleaned away is not read again;
//   - children that are missing although every parent that has a lease has ended: they are
//     created before the parents' ends are written, so a person deleted them;
//   - open shards that the fleet would never reach, from the origin on. At the start there is none,
//     unless the server's list of the shards at a time has a gap.
func (g *genealogy) missing(
	beginners map[runnel.ShardID]bool, origin runnel.From, synced bool,
) []lease.Lease {
	var missing []lease.Lease
	created := map[runnel.ShardID]bool{}
	create := func(s shardmap.Shard, origin runnel.From) {
		missing = append(missing, newLease(s, origin))
		created[s.ID] = true
	}
	for _, s := range g.shards {
		begins := beginners[s.ID]
		switch {
		case g.leased(s.ID):
		case begins && (!synced || !g.covered(s.ID) && !g.any(s.ID, g.down, g.leased)):
			create(s, origin)
		case g.orphaned(s):
			create(s, runnel.FromOldest())
		case s.Open() && !g.covered(s.ID) &&
			!g.any(s.ID, g.up, func(id runnel.ShardID) bool { return created[id] }):
			create(s, origin)
		}
	}
	return missing
}

// orphaned reports whether the shard has no lease though its parents have ended, and no
// descendant has one either.
func (g *genealogy) orphaned(s shardmap.Shard) bool {
	ended := false
	for _, parent := range s.Parents {
		if l, ok := g.leases[parent]; ok {
			if !l.Ended() {
				return false
			}
			ended = true
		}
	}
	return ended && !g.any(s.ID, g.down, g.leased)
}
