// Package wal is the write-ahead log of a data directory. All durability of the server comes from
// it: streams, shards, consumers and items are state machines, and each logs its changes as
// frames of its own kind, in one order.
//
// # Writing
//
// Sequence waits for room, then runs a function. The function decides, changes the state in
// memory and appends frames to a queue in memory. The committer takes all pending frames, writes
// them with one call per chunk, and syncs once. With Config.SyncInterval it does not wait for the
// sync unless a frame requires it: durable then means written, and a power loss may take the frames
// of about one interval. Then the committer runs the frames' durable functions in order, and wakes
// the waiters. All frames that arrive during one sync share the next one. No client may see
// a change before its frame is durable: either a durable function publishes it, or readers Wait
// for the LSN of the state they read.
//
//	caller ── Sequence ──▶ pending chunk ──▶ flight ── write, sync ──▶ durable(), Wait
//	                          ▲ others keep appending          ▲ committer
//
// # On the disk
//
//	LOCK            held while the log is open, with the directory itself
//	FORMAT          the version of the directory
//	snapshot-L      every machine's state at LSN L, or the names of files with it; the two
//	                newest are kept
//	wal/G.wal       frames; G is the file's generation
//
// An LSN counts the bytes of frames, and no others, over all files. A file's first block holds
// the LSN of its first frame, which is also the end of the file before it. Four rules make
// recovery exact:
//
//  1. The log syncs a file as a whole before it writes the next one's first block. So only the
//     newest file can have a torn tail; every other one reaches to the beginning of the next.
//  2. A generation is used once. A reused file, and the first file after every start, get a new
//     generation. The file's name holds it and is durable before the first write to the file.
//     Every frame's checksum covers its generation and its place, so recovery never takes an old
//     frame of a recycled file, or one of a torn tail that was cut off, for a current frame.
//  3. Every frame records how far the log was synced when the frame was written. If a place does
//     not verify, and a later frame records that it was synced, the place has rotted and the
//     start fails. Without such a frame it is a torn tail, which was never acknowledged. When the
//     log falls idle it writes one mark, a frame without content, that records the sync of the
//     last batch.
//  4. A file that ends announces the next one, durably, before that one is begun. FORMAT exists
//     only after a first file was begun. So a start notices if the newest file is missing: see
//     note.go.
//
// Behind the newest frames are zeros or frames of an earlier life: see aheadSize.
//
// A start rewrites the part of the newest file that no frame records as synced, and then syncs
// it: after a failed sync the operating system may show bytes that the disk never received. It does
// so before it renames or removes any other file, since until then the file before it may be needed
// to find the end of the log.
//
// # Versions
//
// FORMAT holds one number for everything in the directory: see format.go for the ladder. A
// program reads every version up to its own, and raises the number when a start has succeeded;
// from then on older programs refuse the directory with an error that says so. A change of the
// format of the log, the snapshots or the segments takes the next number, and adds a directory of
// the old version to server/internal/fsck/testdata, which a test opens.
//
// # Checkpoints
//
// A checkpoint freezes all machines at one instant (Sequence waits briefly), waits until the log
// is durable up to that instant, collects the snapshots, which may take long, and makes them
// durable. Commits continue meanwhile. Close makes a checkpoint, so the next start replays no
// frame. While a checkpoint takes long, records slow down so that the log stays short: see
// pace.go.
//
// A machine may keep most of its state in files of its own, which its snapshots name: see
// FileKeeper. The log tells it which snapshots are kept.
//
// The log keeps the snapshot before the newest one, and the files from there on; it reuses those
// before. A start that finds the newest snapshot damaged restores the older one and replays more.
// Before the first snapshot lies the empty state, so the log's beginning is kept as long.
//
// # Damage
//
// A start stops at damage. Inspect goes on behind it and lists it. For a repair (Config.Salvage)
// Inspect also mends what both checksums of a frame prove, and offers the rest to machines that
// implement Salvager. Rebase then makes the state of the machines the beginning of a new log.
//
// # Failures
//
// A failed write or sync poisons the log: *PoisonedError. So does a directory that was removed or
// renamed, or that lacks the newest file (watch.go). A failed checkpoint changes nothing and
// is tried again.
//
// The log stalls if the disk has no room for the next file, for a frame that is larger than a
// file, or for a write into allocated space (a file system may copy changed blocks, and an
// administrator may limit the length of files at any time). While the log is stalled, Sequence
// returns ErrStalled; pending frames keep their place and are written once there is room. A sync
// that finds no room poisons the log like any failed sync.
//
// The last eighth of a log file is a reserve: if there is no next file, only SequenceFreeing may
// write there (reserve.go). A start on a full disk takes no more space than the directory has
// (full.go), or begins read-only. A machine that cannot write its data obstructs the log.
//
// # Locks
//
// Acquire in this order: room within Config.MaxPending, the gate (shared by Sequence, exclusive
// for a checkpoint and Close), the machines' locks, Log.mu, the room's own lock. No lock is held
// over I/O. The gate is held over fn and Freeze, which do no I/O.
package wal
