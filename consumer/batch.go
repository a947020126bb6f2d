package consumer

import (
	"context"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/sink"
)

// Batch is consecutive records of one shard.
type Batch struct {
	Stream  string         // the stream's name
	ShardID runnel.ShardID // the shard of all the records
	// Records are in the shard's order. A Handler gets at least one, and a Processor none if no
	// record has come for a second. The handler may keep them. It must not change the slice, as by
	// slices.DeleteFunc, since the same one comes again after an error.
	Records []runnel.Record
	// Behind is the distance from the batch's end to the tip of the stream, as GetRecords reports
	// it.
	Behind time.Duration
	// Gap is set if records before these may be missing because the stream removed them, by its
	// retention period, before they were read: those behind Gap.After, the last record that was
	// read, and before Gap.Before, the first of Records. Gap.After is runnel.Start() if none was
	// read. A handler that returns nil accepts the loss; the gap does not come again. If no record
	// follows a gap, as in a shard that the stream removed, no batch carries the gap. EventTrimmed
	// reports every gap, and Config.OnGap can stop the shard there.
	Gap *sink.Gap
}

// Handler processes a batch. It is called for one batch of a shard at a time, in order, and for
// several shards at once. When it returns nil, the batch counts as processed and will be
// checkpointed. After an error or a panic it gets the same batch again, with growing pauses, and no
// later record of the shard is delivered before that. Batches come again after a crash or a
// take-over: each record at least once.
//
// ctx is cancelled when the worker may no longer process the shard: its lease is lost, or the
// worker was stopped and its shutdown time is over. A handler should then return.
type Handler func(ctx context.Context, batch *Batch) error
