// Package consumer reads a stream with a fleet of workers.
//
// A Worker is one member of the fleet. Start as many workers as the work needs, in one process or
// on many machines, under one application name. They divide the shards among themselves only
// through the lease table of that name (package lease), which also holds the checkpoint of each
// shard. Other workers replace a worker that disappears after the failover time.
//
// Records are delivered in order, in one of four forms. A Handler gets one batch of a shard at a
// time, Config.Record gets single records of several keys at once, and a Processor makes its own
// checkpoints: these get each record at least once. A sink.Sink takes each record exactly once. No
// record of a shard is delivered before its parents' last record has been processed and their ends
// checkpointed, and no checkpoint passes a record that has not been processed. ErrorPolicy limits
// the attempts at a record that fails. Worker.Pause, Resume, Seek and Release control a shard.
// docs/consumer.md has the details.
//
// # Calls
//
// GetRecords is called in CBOR, which costs a fraction of the CPU time of JSON, through the client
// in Config.Kinesis with its own retries and middleware. A server that does not understand CBOR is
// asked in JSON. AWS_CBOR_DISABLE=true in the environment turns CBOR off.
//
// # Aggregates and doubles
//
// A worker opens a Kinesis record that is an aggregate, in the format of the Kinesis Producer
// Library. Its user records have Position.Sub from 0 on, and a batch ends with the last of them.
//
// The first copy of a unit (package aggregate) is delivered and the other copies are dropped.
// Positions advance over dropped records, which count as processed. To find the other copies, a
// reader needs the state of its filter. A sink keeps that state in the commit to which it belongs.
// A handler has no commit: its state is in the lease row, with the checkpoint, or in a table beside
// the lease table if it is large (lease.States). A worker without a state reads the last minutes of
// the stream again, those of the shard's ancestors included, but only when the first unit comes. A
// shard begins with the states at its parents' ends, which their rows have, or this worker if it
// has just ended them. An aggregate that was packed for another shard is void: see VoidPolicy.
//
// The state belongs to a page's end, and travels in the page, since the fetcher is a page ahead.
// The state at a shard's end is never empty, so a child can distinguish a parent without units from
// one that has not ended in the sink. A shard without records hands on its parents' state, by a
// Write before End.
//
// # Gaps
//
// If the stream removed records, by its retention period, before they were read, the worker reports
// a gap: by EventTrimmed and a warning, to a handler in Batch.Gap, to a sink in
// sink.Batch.Gap, which keeps it. A gap says that records may be missing, since their number cannot
// be known. An idle shard has no gap as long as a worker looked at it within the retention period.
// If the stream removed a shard before its end was read, the worker ends that shard with a gap, and
// the children go on. With Config.OnGap a handler's shard can stop there instead.
//
// A worker reads the stream with which it began. A stream that was deleted and made again under the
// same name is another stream, and ends the worker (ErrRecreated).
//
// # How a worker works
//
// One goroutine coordinates. It makes the fleet's plan (lease.View.Plan) from the rows, and carries
// out its own part: it takes leases, asks other workers for theirs, and passes what it should not
// have. Two workers, the watchers, look at the whole table every quarter of the failover time. The
// others look when they come and when something of theirs changes, and learn from the index by
// owner what they were given. docs/fleet.md has the rules. Each lease it holds has
//
//   - a keeper, which alone writes the lease's row: heartbeats and checkpoints. It never runs user
//     code, so a slow handler does not lose its lease. If a lease could not be renewed for most of
//     the failover time, it is dropped and its reader cancelled before another worker may take it;
//   - a fetcher, which reads one batch ahead;
//   - the deliverer, which passes the records to one of the forms (form.go). No call of a handler
//     or of a sink's writer begins unless the lease is certainly held. The progress takes the
//     form's commits, each with the filter's state of its place, and passes them to the keeper.
//     A seek voids the progress, so that no late result counts, and a new session begins.
//
// When another worker asks for a shard, the deliverer finishes its batch, and the lease is passed
// with the last checkpoint. A worker that stops passes all its leases; a static one keeps them for
// the next process of its name.
//
// At the end of a shard the deliverer creates the children's leases, then writes the children and
// SHARD_END into its own row. Only then it starts the children that it may start.
package consumer
