package consumer

import (
	"context"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/sink"
)

// Batch is consecutive records of one shard.
type Batch struct {
	Stream  string
	ShardID runnel.ShardID
	// Records are in the shard's order; at least one. The handler may keep them.
	Records []runnel.Record
	// Behind is how far the batch's end is behind the tip of the stream, as GetRecords says.
	Behind time.Duration
	// Gap is set if records before these may be missing: the stream removed them, by its
	// retention period, before they were read. A gap behind which no record comes, as that of a
	// shard which the stream removed, is no batch's: the event Trimmed reports every gap.
	Gap *sink.Gap
}

// Handler processes a batch. It is called for one batch of a shard at a time, in order, and for
// several shards at once. When it returns nil the batch counts as processed and will be
// checkpointed. After an error, or a panic, the same batch is handed over again, with growing
// pauses, and nothing of the shard passes it. Batches come again after a crash or a take-over:
// each record at least once.
//
// ctx is cancelled when the worker may no longer process the shard: its lease is lost, or the
// worker was stopped and its shutdown time is over. A handler should then return.
type Handler func(ctx context.Context, batch *Batch) error
