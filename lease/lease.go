package lease

import (
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/keyspace"
)

// Lease is a row of the table as it was read or written: a value, never shared state. A write takes
// the Lease that its writer last saw and returns the row after the write.
type Lease struct {
	// Key is leaseKey, the table's primary key: the shard's id.
	Key runnel.ShardID
	// Owner is leaseOwner, the worker that holds the lease; "" if it has no owner.
	Owner string
	// Counter is leaseCounter. It changes with every write of an owner and only ever grows.
	Counter int64
	// Checkpoint is the last position processed, or, in its Sequence, one of the words
	// TRIM_HORIZON, LATEST, AT_TIMESTAMP (nothing processed yet) and SHARD_END (done).
	Checkpoint runnel.Position
	// OwnerSwitches is ownerSwitchesSinceCheckpoint.
	OwnerSwitches int64
	// Parents are the shards from which this one was made: none, one or two. Written once.
	Parents []runnel.ShardID
	// Children are the shards that follow this one; known when it has ended.
	Children []runnel.ShardID
	// Pending is pendingCheckpoint, that of the KCL's two-phase checkpoints; zero if there is none.
	// It is read and preserved. The next checkpoint removes it, as in the KCL.
	Pending      runnel.Position
	PendingState []byte
	// Range is the shard's hash keys, nil if the row has none.
	Range *keyspace.Range

	// Token is the token that the sink returned with Checkpoint (runnelToken).
	Token string
	// From is where reading starts as long as nothing has been processed, if Checkpoint is LATEST
	// or AT_TIMESTAMP (runnelFrom, in ms). It keeps a lease that changes hands before its first
	// checkpoint from resolving LATEST anew. It is zero in rows that another program made.
	From time.Time
	// Complete is a time by the stream's clock (runnelComplete, in ms); zero if it is not known.
	// Every record that arrived in the shard up to then is at or before Checkpoint, or, while
	// Checkpoint is a word, before the application's beginning. A reader that comes back compares
	// it with the retention period to find out whether the stream can have removed unread records.
	Complete time.Time
	// Stream is the stream of this shard, as Stream.String gives it (runnelStream); "" in rows that
	// only another program has written.
	Stream string
	// Origin is where the application began (runnelOrigin and, in ms, runnelOriginTime); nil in
	// rows that only another program has written. Beginning marks the first row of a table in
	// which the leases at the origin may be missing yet (runnelBeginning).
	Origin    *runnel.From
	Beginning bool
	// State is the state of the reader's filter at StateAt (runnelState, runnelStateAt); nil if the
	// row has none. StateAt may be before Checkpoint, or beyond it, since other programs move
	// the checkpoint alone. See StateApart for a StateAt without a State.
	State   []byte
	StateAt runnel.Position
	// Hold is a random value that the worker draws when it takes the lease (runnelHold). After a
	// lost answer it distinguishes the holder's own write from one of a worker with the same name.
	Hold string

	// Holder is the worker of this package that took the lease last (runnelHolder). See Owned.
	Holder string
	// MaxLeases is how many leases Holder may hold; 0 means no limit (runnelMax).
	MaxLeases int
	// Static is the process of Holder, if its name outlives the process (runnelStatic).
	Static Static
	// Ask is the last request for the lease (runnelAsk). See Asked.
	Ask     Ask
	askText string // as it is in the row
	// Pin is the worker to which a person moved the lease (runnelPin); "" if none did.
	Pin string
	// Paused is set if a person has paused the shard, wherever it is read (runnelPaused). See
	// Table.Pause.
	Paused bool
	// Sink is set if the worker that took the lease last has a sink, which keeps the position with
	// its records (runnelSink). Rows of older versions do not say it; see also Token.
	Sink bool
	// Failover is the failover time of the worker of this package that took the lease last
	// (runnelFailover, in ms); 0 in rows that only older versions and other programs have taken.
	// See LongestFailover.
	Failover time.Duration
	// Output names where the application's records go (runnelOutput); "" if the row does not say
	// it. See Table.SettleOutput.
	Output string
	// Ender is the worker of this package that ended the shard (runnelEnder).
	Ender string
	// Stats is what the holder measured at its last write (runnelStats); zero if it is not known.
	Stats Stats
	// ThroughputKBps is throughputKBps, a moving average of the KiB of data that the holder
	// processes a second; 0 if it is not known. KCL 3.x writes it with each renewal, and its leader
	// balances by it.
	ThroughputKBps float64
	// Cards are the workers that announce themselves on this row, by their names; nil if none does.
	Cards map[string]Card
}

// Ended reports whether the shard has been processed to its end.
func (l Lease) Ended() bool { return l.Checkpoint.Sequence == runnel.ShardEnd }

// StateApart reports whether the reader's state is in States, since it is too large for the row.
// StateAt is then the position of that state, or of an earlier one: the row there names its own.
func (l Lease) StateApart() bool { return l.State == nil && l.StateAt != runnel.Start() }

// Processed returns the position that Checkpoint means: runnel.Start while nothing has been
// processed, runnel.End for SHARD_END.
func (l Lease) Processed() runnel.Position {
	switch l.Checkpoint.Sequence {
	case runnel.TrimHorizon, runnel.Latest, runnel.AtTimestamp:
		return runnel.Start()
	case runnel.ShardEnd:
		return runnel.End()
	default:
		return l.Checkpoint
	}
}
