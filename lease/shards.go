package lease

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/runnel-stream/runnel"
)

// ShardView is the input of a comparison of a stream's shards with a table's leases.
type ShardView struct {
	// Shards are the stream's, listed after the leases were read: a listed shard without a lease
	// had none then. An empty list says nothing, as a stream always has a shard.
	Shards []runnel.Shard
	// Leases are the table's. Unreadable are the shards of unreadable rows: they count as leases
	// that have not ended.
	Leases     []Lease
	Unreadable []runnel.ShardID
	// Origin and Synced are the Binding's. OpenAtOrigin are the shards that the stream lists as
	// open at the origin's time. They are needed only if the origin has a time, and Synced is not
	// set or Holes reports true.
	Origin       runnel.From
	Synced       bool
	OpenAtOrigin []runnel.ShardID
	// Absent is ShardPlan.Absent of the comparison before this one.
	Absent []runnel.ShardID
	// Java is set if a Java worker lives, or if that is not known. Java workers delete leases by a
	// rule of their own; see Completed.
	Java bool
	// Created is when the stream was created, and Now a time by its clock that has passed.
	Created, Now time.Time
}

// ShardPlan is the result of a comparison.
type ShardPlan struct {
	// Create are the leases to create, parents before children.
	Create []Lease
	// Delete are the leases to delete, as they were read.
	Delete []Lease
	// Absent are the ended leases of shards that the list lacked.
	Absent []runnel.ShardID
}

// Plan returns the leases to create and to delete. It is pure: the same view gives the same plan,
// in whatever order its shards and leases come.
//
// The beginners are the shards at which the application begins; see ShardView.beginners. It creates
// the leases of these shards:
//
//   - in a table that is not synced, the beginners without a lease;
//   - later, if Holes reports true, the beginners without a lease in their whole line, so that an
//     ended shard whose row was cleaned away is not read again;
//   - children without a lease, and without a descendant that has one, although all parents with a
//     lease have ended: children are created before the parents' ends are written, so a person
//     deleted them;
//   - open shards that the fleet would never reach, from the origin on: a person deleted them, and
//     their parents' leases are gone.
//
// It deletes an ended lease whose shard was absent from the stream's list twice in a row: the
// records are gone, so no reader needs it.
func (v ShardView) Plan() ShardPlan {
	k := v.kin()
	var plan ShardPlan
	created := map[runnel.ShardID]bool{}
	create := func(l Lease) {
		l.Origin = &v.Origin
		plan.Create, created[l.Key] = append(plan.Create, l), true
	}
	var beginners map[runnel.ShardID]bool
	if !v.Synced || k.holes() {
		beginners = v.beginners(k)
	}
	for _, s := range k.shards {
		switch {
		case k.leased(s.ID):
		case beginners[s.ID] && (!v.Synced || !k.covered(s.ID) && !k.any(s.ID, k.down, k.leased)):
			create(v.beginner(s, k))
		case k.orphaned(s):
			create(ChildLease(s, v.Origin))
		}
	}
	isCreated := func(id runnel.ShardID) bool { return created[id] }
	for _, s := range k.shards {
		if s.Open() && !created[s.ID] && !k.covered(s.ID) && !k.any(s.ID, k.up, isCreated) {
			create(v.unreached(s, k))
		}
	}
	slices.SortFunc(plan.Create, func(a, b Lease) int { return cmp.Compare(a.Key, b.Key) })
	plan.Delete, plan.Absent = v.ended(k)
	return plan
}

// ended returns the leases to delete, and the ended ones that are absent now.
func (v ShardView) ended(k *kin) (gone []Lease, absent []runnel.ShardID) {
	if len(v.Shards) == 0 {
		return nil, nil
	}
	before := setOf(v.Absent)
	for _, l := range v.Leases {
		if k.listed(l.Key) || !l.Ended() {
			continue
		}
		absent = append(absent, l.Key)
		if before[l.Key] && !v.Java {
			gone = append(gone, l)
		}
	}
	slices.Sort(absent)
	slices.SortFunc(gone, func(a, b Lease) int { return cmp.Compare(a.Key, b.Key) })
	return gone, absent
}

// Holes reports whether there is an open shard that the fleet would never read.
func (v ShardView) Holes() bool { return v.kin().holes() }

// Missing returns the listed shards that should have a lease and have none, in the order of their
// ids: the children of ended parents, and open shards that the fleet would never reach. It is for a
// table in which the leases at the origin have been created. The list of the shards may be older
// than that of the leases; it then lacks the youngest.
func (v ShardView) Missing() []runnel.ShardID {
	k := v.kin()
	var missing []runnel.ShardID
	for _, s := range k.shards {
		if !k.leased(s.ID) && (k.orphaned(s) || s.Open() && !k.covered(s.ID)) {
			missing = append(missing, s.ID)
		}
	}
	return missing
}

// First returns the lease that settles the origin of a new table (Table.Begin): that of the open
// shard with the smallest id, which workers with different origins find alike. If the shard comes
// from one at which the application begins, its lease waits for the parent's end, as any child's.
// ok is false if no shard is open: the stream is being made or deleted.
func (v ShardView) First() (first Lease, ok bool) {
	v.Leases, v.Unreadable = nil, nil
	k := v.kin()
	i := slices.IndexFunc(k.shards, runnel.Shard.Open)
	if i < 0 {
		return Lease{}, false
	}
	s, beginners := k.shards[i], v.beginners(k)
	begins := func(id runnel.ShardID) bool { return beginners[id] }
	if !begins(s.ID) && k.any(s.ID, k.up, begins) {
		return ChildLease(s, v.Origin), true
	}
	return v.beginner(s, k), true
}

// beginners returns the shards at which the application begins. From the oldest record on, these
// are the shards without a listed parent. From a time on, these are the shards that were open then.
// The stream may have removed shards of that time, or be younger. So a shard without a listed
// parent counts, too, unless it had ended by then: in that case a shard that comes from it was open
// then.
func (v ShardView) beginners(k *kin) map[runnel.ShardID]bool {
	open := map[runnel.ShardID]bool{}
	if !v.Origin.Time().IsZero() {
		open = setOf(v.OpenAtOrigin)
	}
	beginners := maps.Clone(open)
	isOpen := func(id runnel.ShardID) bool { return open[id] }
	for _, s := range k.shards {
		if !slices.ContainsFunc(s.Parents, k.listed) && !k.any(s.ID, k.down, isOpen) {
			beginners[s.ID] = true
		}
	}
	return beginners
}

// beginner returns the lease of a shard at which the application begins. Records that arrive from
// now on are the application's.
func (v ShardView) beginner(s runnel.Shard, k *kin) Lease {
	if v.Synced && k.cutOff(s.ID) {
		return v.unreached(s, k)
	}
	l := NewLease(s, v.Origin)
	l.Complete = later(v.Now, l.From)
	return l
}

// unreached returns the lease of a shard that no lease leads to. If it was cut off, its first
// records may be gone already, and the reader finds out from Complete.
func (v ShardView) unreached(s runnel.Shard, k *kin) Lease {
	l := NewLease(s, v.Origin)
	if v.Synced && k.cutOff(s.ID) {
		l.Complete = later(v.Created, l.From)
	}
	return l
}

// NewLease returns the lease of a shard of which nothing has been processed, from a place on.
func NewLease(s runnel.Shard, from runnel.From) Lease {
	keys := s.Range
	return Lease{
		Key: s.ID, Parents: s.Parents, Range: &keys, From: from.Time(),
		Checkpoint: runnel.Position{Sequence: from.Word()},
	}
}

// ChildLease returns the lease of a shard whose parents have ended: from its first record on. If
// the application begins at a time, so does the shard, since it may have been made before that
// time. If it was made later, both mean the same.
func ChildLease(s runnel.Shard, origin runnel.From) Lease {
	if origin.Word() == runnel.AtTimestamp {
		return NewLease(s, origin)
	}
	return NewLease(s, runnel.FromOldest())
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

func setOf(ids []runnel.ShardID) map[runnel.ShardID]bool {
	set := make(map[runnel.ShardID]bool, len(ids))
	for _, id := range ids {
		set[id] = true
	}
	return set
}
