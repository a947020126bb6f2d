package lease

import (
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/keyspace"
)

// Lease is a row of the table as somebody read or wrote it: a value, never shared state. A
// write takes the Lease that its writer last saw and returns the one that now stands.
type Lease struct {
	// Key is leaseKey, the table's primary key: the shard's id.
	Key runnel.ShardID
	// Owner is leaseOwner, the worker that holds the lease; "" if nobody does.
	Owner string
	// Counter is leaseCounter. It changes with every write of an owner and only ever grows.
	Counter int64
	// Checkpoint is the last position processed, or, in its Sequence, one of the words
	// TRIM_HORIZON, LATEST, AT_TIMESTAMP (nothing processed yet) and SHARD_END (done).
	Checkpoint runnel.Position
	// OwnerSwitches is ownerSwitchesSinceCheckpoint.
	OwnerSwitches int64
	// Parents are the shards that this one came from: none, one or two. Written once.
	Parents []runnel.ShardID
	// Children are the shards that this one became; known when it has ended.
	Children []runnel.ShardID
	// Pending is pendingCheckpoint, that of the KCL's two-phase checkpoints. It is read and
	// preserved, and removed by the next checkpoint, as the KCL does; zero if there is none.
	Pending      runnel.Position
	PendingState []byte
	// Range is the shard's hash keys, nil if the row has none.
	Range *keyspace.Range

	// Token is what the sink returned with Checkpoint (runnelToken).
	Token string
	// From is where reading starts as long as nothing has been processed, if Checkpoint is
	// LATEST or AT_TIMESTAMP; zero in rows that another program made (runnelFrom, in ms). A
	// lease that changes hands before its first checkpoint so does not resolve LATEST anew.
	From time.Time
	// Complete is a time by the stream's clock: what arrived in the shard up to then is at or
	// before Checkpoint, or, while that is a word, before the application's beginning. By it a
	// reader that comes back knows whether the stream can have removed anything unread. Zero if
	// it is not known (runnelComplete, in ms).
	Complete time.Time
	// Stream is the stream whose shard this is, as Stream.String gives it; "" in rows that
	// only another program has written (runnelStream).
	Stream string
	// Hold is drawn anew by whoever takes the lease (runnelHold). It tells the holder's own
	// writes, whose answers were lost, from those of a namesake.
	Hold string
}

// Ended reports whether the shard has been processed to its end.
func (l Lease) Ended() bool { return l.Checkpoint.Sequence == runnel.ShardEnd }

// Processed returns the position that Checkpoint stands for: runnel.Start while nothing has
// been processed, runnel.End for SHARD_END.
func (l Lease) Processed() runnel.Position {
	switch l.Checkpoint.Sequence {
	case runnel.TrimHorizon, runnel.Latest, runnel.AtTimestamp:
		return runnel.Start
	case runnel.ShardEnd:
		return runnel.End
	default:
		return l.Checkpoint
	}
}
