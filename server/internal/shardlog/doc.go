// Package shardlog keeps the records of shards: appending, tailing, reading back, retention.
//
// # The places of a record
//
// [Shard.Append], called inside [wal.Log.Sequence], numbers a batch of records and adds it to the
// log as one frame. Each record then passes through three states.
//
//	sequenced   it has its number and its place in the log; no reader can see it
//	published   its frame is durable: Bounds, Read, IndexAt, Wait and LastArrival show it;
//	            it is read from memory
//	drained     the drainer has written it to its shard's newest segment file; it is read from
//	            there, and the memory is given back to the log's budget (wal.Tx.Hold, Release)
//
// The log is the only point of durability. The store writes segment files without a sync, many
// batches at a time. Only a checkpoint ([Store.Freeze]) syncs them, and then names them and their
// sizes in the log's snapshot. A crash may take unsynced data from them, but the log still has
// it: a start cuts each file back to its size in the snapshot and writes the rest again from the
// replayed frames. A start therefore reads the snapshot and the frames after it, and no data.
//
// # Goroutines and locks
//
// A shard has two states with a lock each. The sequencing state (the next index, the last
// arrival, sealed, deleted) is the basis of Append's decisions and changes inside Sequence. The
// publishing state is the one that readers see; the log's durable callbacks advance it. The
// callbacks take only the publishing lock. Neither lock is held over I/O, a channel or another
// blocking call. Lock order: the sequencing lock, the publishing lock, then the locks of the
// drainer's queue and of the caches.
//
// The drainer, one goroutine, does all writing, rolling and removing of segment files. Readers
// only open and read them.
//
// # When the disk fails
//
// A failed write of a segment (disk full, an I/O error) loses no record: its batches stay in
// memory and in the log, the drainer tries again at intervals, and reads continue. Until a try
// succeeds, [Store.Err] returns the error and Append fails with it, since its caller would
// otherwise wait for room in vain. A failed sync is worse, since a second sync may succeed
// without the data. The store then stays failed, so that no later checkpoint can recycle the log,
// and the next start writes the segment again from the log.
//
// # Damage
//
// A damaged record frame is an error of the reads that meet it (*CorruptError), or, with
// Config.SkipDamaged, a place that they pass (damage.go). [Repairer] collects everything whole in
// a damaged directory. Records that it cannot find stay missing: they keep their indexes, lie
// between two segments, and reads pass them.
//
// # Files
//
//	shards/<id>/<index of the first record, 20 digits>.seg
//
// A segment is a sequence of record frames (frame.go) and nothing else. The store builds its
// sparse index in memory on demand (sparse.go).
package shardlog
