package wal

import "io"

// harden makes the newest file durable up to the reader's place. The file may have been written
// but not synced, or its sync may have failed. harden therefore first rewrites the first block
// and all bytes beyond synced: after a failed sync in an earlier life, the operating system shows
// the bytes from memory and reports success for a second sync, although the disk never received
// them.
//
// A start may remove or rename other files only after that: until the newest file is durable, the
// first block of the one before it may be needed to find the log's end. For the same reason
// harden withdraws the file's announcement here: the start may use the announced file for another
// purpose, and announces the file that it makes once that exists.
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

// announce writes a durable note into the newest file that the log continues in next.
func (d *folder) announce(last tail, next uint64) error {
	if last.generation == 0 {
		return nil
	}
	return d.withReader(last.segment, last.start, func(r *reader) error {
		if err := r.writeNote(r.file, last.end, next, false); err != nil {
			return err
		}
		return r.file.Sync()
	})
}
