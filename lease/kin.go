package lease

import (
	"cmp"
	"slices"

	"github.com/runnel-stream/runnel"
)

// kin has the parents and children of each shard of a stream, and its lease. It is pure.
type kin struct {
	shards   []runnel.Shard // in the order of their ids: parents before children
	byID     map[runnel.ShardID]runnel.Shard
	children map[runnel.ShardID][]runnel.ShardID
	ended    map[runnel.ShardID]bool // of each shard with a lease
}

func (v ShardView) kin() *kin {
	k := &kin{
		shards:   slices.Clone(v.Shards),
		byID:     make(map[runnel.ShardID]runnel.Shard, len(v.Shards)),
		children: map[runnel.ShardID][]runnel.ShardID{},
		ended:    make(map[runnel.ShardID]bool, len(v.Leases)),
	}
	slices.SortFunc(k.shards, func(a, b runnel.Shard) int { return cmp.Compare(a.ID, b.ID) })
	for _, s := range k.shards {
		k.byID[s.ID] = s
		for _, parent := range s.Parents {
			k.children[parent] = append(k.children[parent], s.ID)
		}
	}
	for _, l := range v.Leases {
		k.ended[l.Key] = l.Ended()
	}
	for _, id := range v.Unreadable {
		k.ended[id] = false
	}
	return k
}

func (k *kin) leased(id runnel.ShardID) bool {
	_, ok := k.ended[id]
	return ok
}

func (k *kin) listed(id runnel.ShardID) bool {
	_, ok := k.byID[id]
	return ok
}

// any reports whether yes holds for a relative of the shard. It finds them by stepping from one
// relative to the next, and does not ask the shard itself.
func (k *kin) any(
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

func (k *kin) up(id runnel.ShardID) []runnel.ShardID   { return k.byID[id].Parents }
func (k *kin) down(id runnel.ShardID) []runnel.ShardID { return k.children[id] }

// covered reports whether the fleet reads the shard or will come to it: it or an ancestor has a
// lease.
func (k *kin) covered(id runnel.ShardID) bool {
	return k.leased(id) || k.any(id, k.up, k.leased)
}

// holes reports whether there is an open shard that the fleet would never read.
func (k *kin) holes() bool {
	return slices.ContainsFunc(k.shards, func(s runnel.Shard) bool {
		return s.Open() && !k.covered(s.ID)
	})
}

// cutOff reports whether the shard has parents, but neither the stream nor the table has any of
// them. They began and ended while no worker read the stream, and the shard's own first records may
// have been removed with them.
func (k *kin) cutOff(id runnel.ShardID) bool {
	parents := k.byID[id].Parents
	return len(parents) > 0 && !slices.ContainsFunc(parents, func(id runnel.ShardID) bool {
		return k.listed(id) || k.leased(id)
	})
}

// orphaned reports whether the shard has no lease though its parents have ended, and no
// descendant has one either.
func (k *kin) orphaned(s runnel.Shard) bool {
	some := false
	for _, parent := range s.Parents {
		if ended, leased := k.ended[parent]; leased {
			if !ended {
				return false
			}
			some = true
		}
	}
	return some && !k.any(s.ID, k.down, k.leased)
}
