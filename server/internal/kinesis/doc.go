// Package kinesis is the Kinesis Data Streams API on runnel's own log. Streams and shards are in
// package catalogue, records are in package shardlog, and every operation of the API is in a file
// op_*.go.
//
// # Guarantees
//
//   - An answer means durable state. A change is decided, applied and appended to the log inside
//     wal.Log.Sequence, and answered once the log is durable up to there. A read is answered once
//     the newest change that it could have seen is durable. So no client ever acts on something
//     that a crash takes back. (With wal.Config.SyncInterval, durable means written.)
//   - Shards change in one frame: after a crash either both the parents' closing and the
//     children's opening are there, or neither. A record takes its shard under the catalogue's
//     lock, so that the log holds every record of a parent before the frame that closes it. All
//     the splits and merges of UpdateShardCount are one frame as well.
//   - Sequence numbers have AWS's layout. They grow within a shard, from parents to children, and
//     from a deleted stream to the next one of the same name. For that a child's creation second
//     lies above its parents', also for two reshards within a second.
//   - An event of a subscription (SubscribeToShard) shows durable records only. Its continuation
//     number neither loses a record nor gives one twice: see the type subscription.
//   - No timer has to fire for a passing state (CREATING, UPDATING, DELETING) to end, so none can
//     be lost in a crash: see package catalogue.
//   - A reshard has two frames. The first stores the request as pending, with the end of UPDATING;
//     the second carries it out at that time (see resharder). UPDATING ends with the second one:
//     every client that sees ACTIVE sees the children, also after a crash between the two.
//
// # Requests and answers
//
// The input of an operation is a Go struct, and a table holds its shape in the service model
// (model_table.go, generated). A plan combines the two: it decodes a request, from JSON or CBOR,
// and checks its constraints in AWS's words (constraints.go). So an input has no code for either,
// and its validate holds only the rules that the model lacks. PutRecord and PutRecords are the
// exception: package wire decodes them, for the proxy too. Answers are structs, but the frequent
// ones write themselves (answer_*.go).
//
// # Lock order
//
// First wal.Log.Sequence, then the catalogue's lock. After that come shardlog's locks; or the lock
// of the fan-out and then that of a subscription's bell; or the lock of the limits (throttle), a
// leaf. Nothing waits for the disk under the catalogue's lock.
//
// Texts of errors are AWS's, as far as they are known from its documentation and from test suites
// of open-source projects that ran against it. Clients match on some of them.
package kinesis
