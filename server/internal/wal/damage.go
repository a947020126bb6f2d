package wal

import (
	"fmt"
	"path"
)

// checkEnd returns a *CorruptError if the newest file stops verifying at a place that is not the
// log's end.
func (d *folder) checkEnd(r *reader, n note) error {
	if r.size < r.made {
		return d.corrupt(r, r.size, fmt.Sprintf(
			"the file ends here, and it was made with %d bytes", r.made))
	}
	if n.ok && n.end == r.lsn() {
		return nil
	}
	proof, err := r.provesMore(r.off+frameAlign, r.lsn())
	if err == nil && proof > 0 {
		err = d.corrupt(r, r.off, fmt.Sprintf(
			"no frame verifies here, and byte %d shows that there was one", proof))
	}
	return err
}

// checkReaches returns a *CorruptError if the newest begun file ends before the place of the
// snapshot, from. The log was durable up to there. So an announced file was in use, and its content
// is that of an earlier life, or of another file. Without one the log is older than the snapshot.
func (d *folder) checkReaches(r *reader, n note, from LSN) error {
	if from > r.start+LSN(max(r.size-blockSize, 0)) && n.next == 0 {
		return d.gone(from)
	}
	if !n.ok || from <= n.end {
		return nil
	}
	// A note without effect, as of a next file that could not be begun, may have frames behind it.
	if _, more, err := newReader(r.file, r.segment, n.end).next(); more || err != nil {
		return err
	}
	corrupt := &CorruptError{
		File: fileName(d.dir, n.next), LSN: from,
		Reason: fmt.Sprintf("the first block is not this file's, and a snapshot shows that the "+
			"log went on there from position %d", n.end),
	}
	if n.next == 0 {
		corrupt.File = fileName(d.dir, r.generation)
		corrupt.Offset = blockSize + int64(n.end-r.start)
		corrupt.Reason = "the log ends here, and a snapshot shows that it went on"
	}
	return corrupt
}

// checkAnnounced returns a *CorruptError if the newest file announces a next file that is
// missing.
func (d *folder) checkAnnounced(files logFiles, newest uint64, n note) error {
	if n.next == 0 || files.has(n.next) {
		return nil
	}
	return &CorruptError{
		File: fileName(d.dir, n.next), LSN: n.end,
		Reason: fmt.Sprintf("the file is gone, and file %d says that the log goes on there",
			newest),
	}
}

// checkUnbegun examines the files without a valid first block. A normal one is the file prepared
// in advance, or a file that was being begun during the crash. Frames in it that record a later
// sync prove that it was in use: its block is damaged. In directories with notes only the
// announced file can be in use: a start skips the others, but an inspection examines them all.
func (d *folder) checkUnbegun(files logFiles, after uint64, end LSN, n note) error {
	for _, f := range files {
		if f.begun || f.generation <= after ||
			d.format >= formatNotes && !d.readOnly && f.generation != n.next {
			continue
		}
		f.start = end
		err := d.withReader(f.segment, end, func(r *reader) error {
			proof, err := r.provesMore(r.off, end)
			if err == nil && proof > 0 {
				err = d.corrupt(r, 0, fmt.Sprintf(
					"the first block does not verify, and byte %d shows that it did", proof))
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// gone returns the error for a place of the log that no file holds.
func (d *folder) gone(at LSN) *CorruptError {
	return &CorruptError{
		File: path.Join(d.dir, walDir), LSN: at,
		Reason: "the log files that hold this place are gone",
	}
}

func (d *folder) corrupt(r *reader, off int64, reason string) error {
	return d.corruptAt(r, off, reason)
}

func (d *folder) corruptAt(r *reader, off int64, reason string) *CorruptError {
	return &CorruptError{
		File: fileName(d.dir, r.generation), Offset: off, LSN: r.lsn(),
		Reason: reason,
	}
}
