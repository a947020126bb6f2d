// Package kinesis is the Kinesis Data Streams API on runnel's own log: streams and shards are a
// state machine over package wal (the catalogue), records are in package shardlog, and every
// operation of the API is one file, op_*.go.
//
// # What is promised
//
//   - An answer stands for durable state. What an operation changes is decided, applied and
//     appended to the log inside wal.Log.Sequence, and answered once the log is durable up to
//     there. What an operation only reads is answered once the newest change that it could have
//     seen is durable. So no client ever acts on something that a crash takes back.
//   - Shards change in one frame: the parents' closing and the children's opening are both there
//     after a crash or neither is. A record takes its shard under the catalogue's lock, so that
//     every record of a parent stands in the log before the frame that closes it. All the splits
//     and merges of UpdateShardCount are one frame as well.
//   - Sequence numbers have AWS's layout and grow within a shard, from parents to children, and
//     from a deleted stream to one that is created again under the same name.
//   - An event of a subscription (SubscribeToShard) shows durable records only, and the number
//     to go on from neither loses one nor gives one twice: see the type subscription.
//   - States that pass with time (CREATING, UPDATING, DELETING) are stored as an end of time and
//     derived when asked for. No timer has to fire for them, so none can be lost in a crash.
//   - A resharding has two frames: what is asked for is pending in the first, with the end of
//     UPDATING, and the second one does it when that has come (see resharder). UPDATING ends with
//     the second one: whoever sees ACTIVE sees the children, also after a crash between the two.
//
// # Requests and answers
//
// What an operation takes is a Go struct, and what the service model says of it is a table
// (model_table.go, generated). A plan is what the two have in common: it decodes a request,
// from JSON or CBOR (document.go), and checks its constraints in AWS's words (constraints.go).
// So an input has no code for either, and its validate holds only what the model does not say.
// Answers are structs too, but for the hot ones, which write themselves (answer_*.go).
//
// # Lock order
//
// wal.Log.Sequence, then the catalogue's lock, then whatever shardlog takes, or the lock of the
// fan-out and after it that of a subscription's bell, or the limits' (throttle), a leaf. Nothing
// waits for the disk under the catalogue's lock.
//
// Texts of errors are those of AWS as they are known from its documentation and from suites of
// open-source projects that were run against it; clients match on some of them.
package kinesis
