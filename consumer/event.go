package consumer

import (
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/sink"
)

// EventKind says what happened.
type EventKind string

// The kinds of events, and which fields of Event they set beside the common ones.
const (
	// LeaseTaken: the worker holds the lease of a shard that nobody held.
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
	// Delivered: the handler has returned for, or the sink has taken, Records records with
	// Bytes bytes of data, up to Position; Behind is the distance to the tip. Besides them
	// there were Doubles records that were dropped, and among them are those of Malformed and
	// Unfiltered units.
	Delivered EventKind = "delivered"
	// Committed: everything up to Position has been processed, and stands in the sink.
	Committed EventKind = "committed"
	// Checkpointed: the lease row says so, too.
	Checkpointed EventKind = "checkpointed"
	// Moved: another worker's commit stood in the sink already; reading goes on after
	// Position, and what was read beyond it is dropped.
	Moved EventKind = "moved"
	// Trimmed: what followed Position may have been removed from the stream, by its retention
	// period, before it was read: Gap says up to where.
	Trimmed EventKind = "trimmed"
	// Voided: the aggregate at Position, with Records user records, is void (Err, a
	// *VoidError); Config.Void says whether it was dropped or delivered.
	Voided EventKind = "voided"
	// Rebuilding: before reading begins after Position, what stands before it is read again, to
	// know which units have been delivered: Records Kinesis records so far. It comes every few
	// seconds.
	Rebuilding EventKind = "rebuilding"
	// Rebuilt: that is done.
	Rebuilt EventKind = "rebuilt"
	// Failed: something went wrong (Err) and will be tried again.
	Failed EventKind = "failed"
)

// Event is one thing that a worker did or that happened to it.
type Event struct {
	Kind    EventKind
	Time    time.Time
	Worker  string
	ShardID runnel.ShardID // "" in what concerns no single shard

	Other    string
	Position runnel.Position
	Children []runnel.ShardID
	Records  int
	Bytes    int64
	Behind   time.Duration
	Err      error
	Gap      *sink.Gap

	// Of Delivered: user records that were dropped as doubles, and units whose doubles cannot
	// be dropped, since they break the format (aggregate.Malformed) or the filter has no room
	// for them (aggregate.Unfiltered).
	Doubles, Malformed, Unfiltered int
}
