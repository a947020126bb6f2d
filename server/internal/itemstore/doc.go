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
// All items are in memory. A snapshot reads copy-on-write trees and does not stop writers.
package itemstore
