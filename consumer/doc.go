// Package consumer reads a stream with a fleet of workers.
//
// A Worker is one member of the fleet. Start as many as there is work for, in one process or
// on many machines, under one application name; they divide the shards among themselves
// through the lease table of that name alone (package lease), in which each shard also has its
// checkpoint. A worker that disappears is replaced after the failover time.
//
// Records are handed over in order, one batch of a shard at a time, either to a Handler, at
// least once, or to a sink.Sink, which makes that exactly once. No record of a shard is handed
// over before its parents' last record has been processed and their ends checkpointed, and no
// checkpoint passes a record that has not been processed.
//
// # Aggregates and doubles
//
// A Kinesis record that is an aggregate, in the format of the Kinesis Producer Library, is
// opened: its user records have Position.Sub from 0 on, and a batch ends with the last of them.
// Of units (package aggregate) the first copy is delivered and the others are dropped, below
// positions: what was dropped counts as processed. What a reader has to know for that, it has
// from the sink, which keeps it in the commit that it belongs to, or, for a handler, by reading
// the last minutes before the checkpoint again, those of the shards that this one came from
// too, before it begins. A handler's shard of which this worker has just ended all parents
// begins with what it knew at their ends, and nothing is read again. An aggregate that was
// packed for another shard is void: see VoidPolicy.
//
// # Gaps
//
// What the stream removed before it was read, by its retention period, is reported: by the event
// Trimmed and a warning, to a handler in Batch.Gap, to a sink in sink.Batch.Gap, which keeps it.
// A gap says that records may be missing, since how many there were cannot be known. An idle shard
// has none, as long as a worker looked at it within the retention period. A shard that the stream
// removed before its end was read is ended with a gap, and its children go on.
//
// A worker reads the stream that it began with. One that was deleted and made again under the same
// name is another one, and ends the worker (ErrRecreated).
//
// # How a worker works
//
// One goroutine coordinates: every half failover time it reads the table, sees whose counters
// have moved, and takes what lease.Plan says. Each lease it holds has
//
//   - a keeper, which alone writes the lease's row: heartbeats, and the checkpoints that it is
//     given. It never runs user code, so a slow handler does not lose its lease. A lease that
//     could not be renewed for most of the failover time is dropped, and its reader cancelled,
//     before another worker may take it;
//   - a fetcher, which reads one batch ahead;
//   - the deliverer, which calls the handler or the sink's writer.
//
// At the end of a shard the deliverer creates the children's leases, then writes the children
// and SHARD_END into its own row, and only then starts the children it may start.
package consumer
