// Package shardlog keeps the records of shards: appending, tailing, reading back, retention.
//
// # Where a record is
//
// A record is born in [wal.Log.Sequence]: [Shard.Append] numbers a batch and adds it to the
// log as one frame. From then on it passes through three places.
//
//	sequenced   it has its number and its place in the log; nobody can see it
//	published   its frame is durable: Bounds, Read, IndexAt, Wait and LastArrival know it;
//	            it is read from memory
//	drained     the drainer has written it to its shard's newest segment file; it is read from
//	            there, and the memory is given back to the log's budget (wal.Tx.Hold, Release)
//
// The log is the only point of durability. Segment files are written without a sync, many
// batches at a time, and synced only by a checkpoint ([Store.Freeze]), which then names them
// and their sizes in the log's snapshot. What a crash takes from them, the log still has: a
// start cuts each file back to the size in the snapshot and writes the rest again from the
// replayed frames. A start therefore reads the snapshot and the frames after it, and no data.
//
// # Goroutines and locks
//
// A shard has two states with a lock each. What Append decides on (the next index, the last
// arrival, sealed, deleted) belongs to the sequencing side, which runs inside Sequence. What
// readers see belongs to the publishing side, which the log's durable callbacks advance. The
// callbacks take only the publishing lock, and neither lock is ever held over I/O, a channel
// or another call that waits. The sequencing lock comes first, then the publishing lock, then
// those of the drainer's queue and of the caches, which are leaves.
//
// The one drainer goroutine alone writes, rolls and removes segment files. Readers only open
// and read them.
//
// # When the disk fails
//
// A segment that cannot be written (disk full, an I/O error) loses nothing: its batches stay
// in memory and in the log, the drainer tries again at intervals, reads go on, and until a
// try succeeds [Store.Err] says so and Append refuses with that error rather than let the
// caller wait for room that does not come. A segment that cannot be synced is worse, since a
// second sync may succeed without the data: the store then stays failed, so that no later
// checkpoint can recycle the log, and the next start writes the segment again from there.
//
// # Files
//
//	shards/<id>/<index of the first record, 20 digits>.seg
//
// A segment is a sequence of record frames (frame.go) with nothing before, between or after
// them. Its sparse index is made in memory when it is needed (sparse.go).
package shardlog
