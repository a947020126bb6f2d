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
	// LeaseTaken: the worker holds the lease of a shard that had no owner.
	LeaseTaken EventKind = "lease-taken"
	// LeaseExpired: it took the lease over from Other, which had not renewed it in time.
	LeaseExpired EventKind = "lease-expired"
	// LeaseStolen: it took the lease from Other, which had more than its share.
	LeaseStolen EventKind = "lease-stolen"
	// LeaseLost: another worker took the lease, or it could not be renewed in time (Err).
	LeaseLost EventKind = "lease-lost"
	// LeaseReleased: the worker gave the lease back.
	LeaseReleased EventKind = "lease-released"
	// ShardStarted: reading begins after Position.
	ShardStarted EventKind = "shard-started"
	// ShardEnded: the shard was processed to its end, and Children go on.
	ShardEnded EventKind = "shard-ended"
	// CaughtUp: with Config.Once, the shard has been processed as far as asked.
	CaughtUp EventKind = "caught-up"
	// Delivered: the handler has returned for, or the sink has taken, Records records with Bytes
	// bytes of data, up to Position; Behind is the distance to the tip. Doubles counts the user
	// records that were dropped and are not in Records. The units counted by Malformed and
	// Unfiltered are in Records.
	Delivered EventKind = "delivered"
	// Committed: every record up to Position has been processed, and the sink has committed it.
	Committed EventKind = "committed"
	// Checkpointed: the lease row has this position, too.
	Checkpointed EventKind = "checkpointed"
	// Moved: the sink had another worker's commit already. Reading goes on after Position, and the
	// records that were read beyond it are dropped.
	Moved EventKind = "moved"
	// Trimmed: the records after Position may have been removed from the stream, by its retention
	// period, before they were read. Gap has the range.
	Trimmed EventKind = "trimmed"
	// Voided: the aggregate at Position, with Records user records, is void (Err, a *VoidError).
	// Config.Void decides whether it was dropped or delivered.
	Voided EventKind = "voided"
	// Rebuilding: reading is to begin after Position, and before that the worker reads the earlier
	// records again to find out which units have been delivered. Records is the number of Kinesis
	// records so far. It comes every few seconds.
	Rebuilding EventKind = "rebuilding"
	// Rebuilt: the rebuilding is done.
	Rebuilt EventKind = "rebuilt"
	// Failed: an operation failed (Err) and will be tried again.
	Failed EventKind = "failed"
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
	Records  int              // user records; with Rebuilding, Kinesis records
	Bytes    int64            // of the data of Records
	Behind   time.Duration    // the distance to the tip of the stream
	Err      error            // the cause
	Gap      *sink.Gap        // the range that the stream removed unread

	// For Delivered. Doubles counts the user records that were dropped as doubles. Malformed and
	// Unfiltered count the units whose doubles cannot be dropped: malformed units break the format
	// (aggregate.VerdictMalformed), and the filter has no room for unfiltered ones
	// (aggregate.VerdictUnfiltered).
	Doubles, Malformed, Unfiltered int
}
