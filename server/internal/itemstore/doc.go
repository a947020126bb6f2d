// Package itemstore keeps tables of items, durably: it is what server/internal/dynamo stands on.
//
// The store is a state machine over the write-ahead log (wal.KindItems). A write decides on the
// newest state and changes it in memory while its frame takes its place in the log; the answer
// waits until that frame is durable. A read takes the newest state too, remembers which frame
// made it, and waits for that frame. So nothing is visible before it is durable, not even
// through the answer that a condition failed.
//
// A frame holds the whole new item, so replaying needs no expressions and is idempotent. A
// transaction is one frame: its changes come back together or not at all, and with them the
// token by which a client asks for it again. Indexes are not stored but made from the items when
// the store opens, and follow every write under the table's lock.
//
// Everything is in memory; a snapshot is taken from copy-on-write trees without stopping
// writers.
package itemstore
