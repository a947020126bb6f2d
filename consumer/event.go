package consumer

import (
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/sink"
)

// EventKind is the kind of an Event.
type EventKind string

// The kinds of events, and the fields of Event that they set beside the common ones.
const (
	// EventLeaseTaken: the worker holds the lease of a shard that had no owner.
	EventLeaseTaken EventKind = "lease-taken"
	// EventLeaseResumed: a static worker goes on with a lease that an earlier process of its name
	// held.
	EventLeaseResumed EventKind = "lease-resumed"
	// EventLeaseKept: a static worker stops, and keeps the lease for its next process.
	EventLeaseKept EventKind = "lease-kept"
	// EventLeaseExpired: it took the lease over from Other, which had not renewed it in time.
	EventLeaseExpired EventKind = "lease-expired"
	// EventLeaseAsked: it asked Other for a lease, for itself or for a third worker.
	EventLeaseAsked EventKind = "lease-asked"
	// EventLeaseReceived: the lease was passed to it.
	EventLeaseReceived EventKind = "lease-received"
	// EventLeasePassed: it passed the lease to Other, with the last checkpoint.
	EventLeasePassed EventKind = "lease-passed"
	// EventHandOverTimeout: the handler or the sink took longer than Config.HandOverTimeout to
	// finish. Its context ends, and the lease is passed to Other with the last checkpoint.
	EventHandOverTimeout EventKind = "hand-over-timeout"
	// EventLeaseStolen: it robbed Other of the lease: a program that passes none, and that had more
	// than its share.
	EventLeaseStolen EventKind = "lease-stolen"
	// EventLeaseLost: another worker took the lease, or it could not be renewed in time (Err).
	EventLeaseLost EventKind = "lease-lost"
	// EventLeaseReleased: the worker gave the lease back, to no worker in particular.
	EventLeaseReleased EventKind = "lease-released"
	// EventShardStarted: reading begins after Position.
	EventShardStarted EventKind = "shard-started"
	// EventShardEnded: the shard was processed to its end, and Children go on.
	EventShardEnded EventKind = "shard-ended"
	// EventCaughtUp: with Config.Once, the shard has been processed as far as asked.
	EventCaughtUp EventKind = "caught-up"
	// EventDelivered: the handler has returned for, or the sink has taken, Records records with
	// Bytes bytes of data, up to Position; Behind is the distance to the tip. Doubles counts the
	// user records that were dropped and are not in Records. The units counted by Malformed and
	// Unfiltered are in Records.
	EventDelivered EventKind = "delivered"
	// EventCommitted: every record up to Position has been processed, and the sink has committed
	// it.
	EventCommitted EventKind = "committed"
	// EventCheckpointed: the lease row has this position, too.
	EventCheckpointed EventKind = "checkpointed"
	// EventMoved: the sink had another worker's commit already. Reading goes on after Position, and
	// the records that were read beyond it are dropped.
	EventMoved EventKind = "moved"
	// EventTrimmed: the records after Position may have been removed from the stream, by its
	// retention period, before they were read. Gap has the range. A worker reports it once, also if
	// the sink or Config.OnGap stops the shard there.
	EventTrimmed EventKind = "trimmed"
	// EventVoided: the aggregate at Position, with Records user records, is void (Err, a
	// *VoidError). Config.Void has dropped Dropped of them. The others were delivered, and are in
	// the Records of EventDelivered too.
	EventVoided EventKind = "voided"
	// EventSubscribed: with Config.Fanout, a subscription to the shard begins, the first one or the
	// next.
	EventSubscribed EventKind = "subscribed"
	// EventPolling: with Fanout.OrPoll, the shard is read by polling from now on, since no
	// subscription can be had (Err). The next EventSubscribed ends that.
	EventPolling EventKind = "polling"
	// EventRebuilding: reading is to begin after Position, and before that the worker reads the
	// earlier records again to find out which units have been delivered. Records is the number of
	// Kinesis records so far. It comes every few seconds.
	EventRebuilding EventKind = "rebuilding"
	// EventRebuilt: the rebuilding is done.
	EventRebuilt EventKind = "rebuilt"
	// EventHandlerStuck: the handler has not returned since Since, though its context has ended.
	// Run waits for it. It comes every ten seconds.
	EventHandlerStuck EventKind = "handler-stuck"
	// EventSought: Worker.Seek has moved the shard's reading to Position.
	EventSought EventKind = "sought"
	// EventPaused: the lease row says that the shard is paused, as runnel leases pause makes it.
	EventPaused EventKind = "paused"
	// EventResumed: the lease row no longer says that.
	EventResumed EventKind = "resumed"
	// EventSkipped: Records records from Position on are passed over, by Config.OnError, after
	// the error Err.
	EventSkipped EventKind = "skipped"
	// EventShardStopped: Config.OnError has stopped the shard, for the error Err.
	EventShardStopped EventKind = "shard-stopped"
	// EventUnclaimed: no worker has read the shards Unclaimed for three failover times, since every
	// worker has as many as its MaxLeases allows. It comes again when these shards change, without
	// any when all are read again, and every 5 minutes. Up to two workers of a fleet report it.
	EventUnclaimed EventKind = "unclaimed"
	// EventFailed: an operation failed (Err) and will be tried again.
	EventFailed EventKind = "failed"
)

// Event is an action of a worker or an event that it observed.
type Event struct {
	Kind    EventKind      // says which of the fields below are set
	Time    time.Time      // when it happened
	Worker  string         // the worker's name in the lease table
	ShardID runnel.ShardID // "" if the event concerns no single shard

	Other    string           // the worker that held the lease before
	Position runnel.Position  // a position in the shard, as the kind says
	Children []runnel.ShardID // the shards that follow ShardID
	Records  int              // user records; with EventRebuilding, Kinesis records
	Bytes    int64            // of the data of Records
	Behind   time.Duration    // the distance to the tip of the stream
	Err      error            // the cause
	Gap      *sink.Gap        // the range that the stream removed unread
	Since    time.Time        // when it began
	Dropped  int              // user records of a void aggregate that were not delivered

	Unclaimed []runnel.ShardID // shards that no worker may take

	// For EventDelivered. Doubles counts the user records that were dropped as doubles. Malformed
	// and Unfiltered count the units whose doubles cannot be dropped: malformed units break the
	// format (aggregate.VerdictMalformed), and the filter has no room for unfiltered ones
	// (aggregate.VerdictUnfiltered).
	Doubles, Malformed, Unfiltered int
}
