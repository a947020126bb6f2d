package shardlog

import "fmt"

// A record is written to a segment only once its frame is durable in the log. So the bytes of a
// segment behind the snapshot are a beginning of the frames that the log has from the same record
// on, and a start that cuts them off writes them all again. If the log has fewer bytes, its end is
// missing: the directory was copied while a server used it, or a disk lost what it had synced. The
// log itself cannot show that, since a missing end looks like the end.
//
// A power cut does the same to a log that is synced at intervals, and may do no more.

// extra is a part of a segment behind the snapshot, which a start cuts off.
type extra struct {
	first uint64 // index of its first record
	left  int64  // its bytes that were not in the log so far
}

// weigh adds a segment that begins behind the snapshot to the extras. Older ones were trimmed, and
// are left over.
func (sh *Shard) weigh(first, next uint64) error {
	if first < next {
		return nil
	}
	info, err := sh.store.cfg.FS.Stat((&segment{shard: sh, first: first}).path())
	if err != nil {
		return fmt.Errorf("look at a segment: %w", err)
	}
	sh.extras = append(sh.extras, extra{first, info.Size()})
	return nil
}

// found subtracts a replayed batch from the extras that it continues.
func (sh *Shard) found(b *batch) {
	for i := range sh.extras {
		if e := &sh.extras[i]; b.end() > e.first {
			e.left -= int64(len(b.after(e.first).frames))
		}
	}
}

// lost logs the shards whose segments had more records than the log.
func (s *Store) lost() {
	const why = "the directory was copied while a server used it, or the disk has lost synced " +
		"data: restore a backup if there is one (with --sync interval a power cut does the same)"
	for _, sh := range s.all() {
		left := int64(0)
		for _, e := range sh.extras {
			left = max(left, e.left)
		}
		sh.extras = nil
		if left > 0 {
			s.cfg.Logger.Warn("acknowledged records are gone: a shard's segments had more of them "+
				"than the log, whose end is missing", "folder", sh.folder, "bytes", left,
				"why", why)
		}
	}
}
