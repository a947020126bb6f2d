// Package backup copies a data directory, also while a server uses it.
//
// # The order
//
// Segments only grow, and their written bytes never change; the log and the snapshots do the rest.
// The items' files are complete when they get their names, and never change. So the copy is
// consistent if its log is newer than its segments and has the files that its snapshot names:
//
//  1. passes over the segments and the items' files, until a pass finds little that is new. The
//     server goes on as usual, checkpoints included.
//  2. the hold: the server postpones checkpoints, so it reuses no log file.
//  3. one more pass. The copy then has every byte that the snapshot names. It may have items' files
//     that only an older snapshot names: the first checkpoint removes these.
//  4. the snapshot, and the log behind it up to its end: see [wal.Copy].
//
// A segment's copy may be longer than the snapshot says: a start cuts it back and writes the same
// bytes from the log. A segment that the server removes meanwhile is missing, or left over. The
// frame that trims or deletes it was durable before that, so step 4 copies it, and a start does not
// look for the segment. If the server makes a checkpoint during steps 3 and 4 after all, both
// are done again.
//
// Every record that was acknowledged before the backup began is in the copy, since its frame is
// below the snapshot, and so in the segments, or behind it.
package backup
