// Package itemstore keeps the durable tables of items behind server/internal/dynamo.
//
// The store is a state machine over the write-ahead log (wal.KindItems). A write decides on the
// newest state, changes it in memory and appends a frame to the log in one step; its answer waits
// until that frame is durable. A read takes the newest state too, remembers the frame that made
// it, and waits until that frame is durable. So no answer shows a change before it is durable,
// not even the answer that a condition failed.
//
// A frame holds the whole new item, so a replay evaluates no expressions and is idempotent. A
// transaction is one frame: after a crash all of its changes are back or none, together with the
// client's token for repeating the request. Indexes are not stored: the store builds them from
// the items when it opens, and updates them on every write under the table's lock.
//
// # Memory
//
// All items are in memory, each as its encoding and decoded for each use: see entry.
// Config.MaxMemory bounds them. A decision that would grow them further is refused before it is
// logged, as a false condition is, so a replay needs no bound.
//
// # Snapshots
//
// A snapshot has the items that changed since the one before, and the names of data files with the
// others: see chain. Freeze takes the changes as a whole, and stops no writer for longer.
// A data file can lose one part in seventeen of each block and is read all the same: see
// datafile.go. A start reads the files on all processors: see load.go.
package itemstore
