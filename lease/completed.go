package lease

import "github.com/runnel-stream/runnel"

// Completed returns the leases that no worker needs any more, by the KCL's own rule
// (LeaseCleanupManager): the shard has ended, the leases of all its children are there and have a
// position, and its parents' leases are gone. It is pure.
//
// Java workers count ended leases in their shares. A Java worker that comes when many are left
// fills its share with them, reads nothing, and deletes them minutes later.
func Completed(leases []Lease) []Lease {
	byKey := ByKey(leases)
	begun := func(id runnel.ShardID) bool {
		l, there := byKey[id]
		return there && (l.Ended() || l.Checkpoint.Sequence.IsNumber())
	}
	var done []Lease
	for _, l := range leases {
		if l.Ended() && len(l.Children) > 0 && all(l.Children, begun) &&
			all(l.Parents, func(id runnel.ShardID) bool { _, there := byKey[id]; return !there }) {
			done = append(done, l)
		}
	}
	return done
}

func all(ids []runnel.ShardID, is func(runnel.ShardID) bool) bool {
	for _, id := range ids {
		if !is(id) {
			return false
		}
	}
	return true
}
