package wal

import "io"

// harden makes sure that all of the newest file is durable, up to the reader's place: it may
// have been written and not synced, or its sync have failed. The first block, and what lies
// beyond synced, is written again first: if a sync failed in an earlier life, the system shows
// it from memory, and says that a second sync succeeded, although the disk never got it.
//
// Only then may a start take away or rename other files: until the newest one is durable, the
// one before it may have to tell where the log ends. For the same reason what the file announced
// is taken back here, since a start may use that file for something else, and the file that the
// start makes is announced when it is there.
func (r *reader) harden(synced LSN) error {
	if err := r.writeNote(r.file, r.lsn(), 0, false); err != nil {
		return err
	}
	_, used := r.version()
	if _, err := r.file.WriteAt(encodeBlock(r.segment)[:used], 0); err != nil {
		return err
	}
	end := r.off
	for r.off = blockSize + int64(max(synced, r.start)-r.start); r.off < end; {
		p, err := r.peek(int(min(readWindow, end-r.off)))
		if err != nil {
			return err
		}
		if p == nil {
			return io.ErrUnexpectedEOF
		}
		n, err := r.file.WriteAt(p, r.off)
		if err != nil {
			return err
		}
		r.off += int64(n)
	}
	return r.file.Sync()
}

// announce notes durably in the newest file that the log goes on in next.
func (l *Log) announce(last tail, next uint64) error {
	if last.generation == 0 {
		return nil
	}
	return l.withReader(last.segment, last.start, func(r *reader) error {
		if err := r.writeNote(r.file, last.end, next, false); err != nil {
			return err
		}
		return r.file.Sync()
	})
}
