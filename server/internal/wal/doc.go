// Package wal is the one log of a data directory: the only point of durability of everything
// that runs on it. Streams, shards, consumers and items are state machines over it, each with
// frames of its own kind in the one order of the log.
//
// # Writing
//
// Sequence waits for room, then runs a function that decides, changes the state in memory and
// appends frames; nothing has been written then. The committer takes all that is pending,
// writes it with one call per chunk, syncs once, runs the frames' durable functions in order,
// and wakes who waits: one sync is shared by all who came while the one before it ran. What a
// frame says must not be shown to anybody before: durable functions make state visible, or
// readers Wait for the LSN of what they saw.
//
//	caller ── Sequence ──▶ pending chunk ──▶ flight ── write, sync ──▶ durable(), Wait
//	                          ▲ others go on filling          ▲ committer
//
// # On the disk
//
//	LOCK            held while the log is open
//	FORMAT          the version of the directory
//	snapshot-L      every machine's state at LSN L
//	wal/G.wal       frames; G is the file's generation
//
// An LSN counts bytes of frames, and no others, over all files; so a file's first block, which
// tells its first LSN, tells the end of the file before it. Four rules make recovery exact:
//
//  1. A file is synced as a whole before the next one's first block is written. So only the
//     newest file can have a torn tail, and every other one reaches to where the next begins.
//  2. A generation is used once. A file that is used again, and the first file after every
//     start, get a new one, which is durable as a file name before anything is written under
//     it; every frame's checksum covers its generation and its place. So neither what a
//     recycled file held, nor what was once cut off as a torn tail, is taken for a frame.
//  3. Every frame tells up to where the log was synced when it was written. So a place that
//     does not verify, with a frame behind it that knows it to have been synced, is rot, and
//     an error; without one it is a torn tail, which nobody was told of. When the log falls
//     idle, one mark, a frame without content, is written to say this of the last batch.
//  4. A file that ends announces the next one, durably, before that one is begun, and FORMAT is
//     there only once a file was begun. So the newest file cannot be taken away unnoticed,
//     whatever it held: see note.go.
//
// Behind the newest frames are zeros, or what an earlier life has left: see aheadSize.
//
// What the newest file holds beyond the last such mark is written again at a start, before it
// is synced: after a failed sync the system may show bytes that the disk never got.
//
// # Versions
//
// FORMAT holds one number for everything in the directory: see format.go for the ladder. A
// program reads every version up to its own, and raises the number when a start has succeeded;
// from then on older programs refuse the directory, with a sentence that says so. What changes
// the meaning of bytes in the log, the snapshots or the segments takes the next number, and
// leaves a directory of the old one in server/internal/fsck/testdata, which a test opens for ever.
//
// # Checkpoints
//
// A checkpoint freezes all machines at one instant (Sequence waits for that long), waits until
// the log is durable up to it, collects the snapshots, which may take its time, and makes them
// durable; only then are the files before it used again. Commits go on meanwhile. Close
// checkpoints, so that the next start replays nothing.
//
// # Failures
//
// A failed write or sync poisons the log: *PoisonedError. A failed checkpoint has changed
// nothing and is tried again. If there is no room on the disk, for the next file, for a frame
// that is larger than a file, or for a write to where room was allocated (a file system may
// copy what it changes; a limit on the length of files may be set at any time), the log stalls,
// with ErrStalled for those who come to Sequence, until there is: what is pending keeps its
// place and is written then. A sync that finds no room poisons, as any sync that fails.
//
// # Locks
//
// Config.MaxPending's room is taken first, then the gate (for reading: Sequence; for writing:
// a checkpoint, and Close), then the machines' locks, then Log.mu, then the room's own. None
// is held over I/O, but the gate over fn and Freeze, which do none.
package wal
