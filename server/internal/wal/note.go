package wal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/runnel-stream/runnel/internal/vfs"
)

// A note lies in a log file's first block, in a sector of its own, so that a torn write of the
// note cannot harm the block's other fields. It records the end of the file and the next file. In
// little-endian numbers:
//
//	[0, 4)   CRC-32C of the rest
//	[4, 8)   1 if the log has ended there in order, and all of it is synced; else 0
//	[8, 16)  generation of the file that holds the note
//	[16, 24) LSN at which that file ends
//	[24, 32) generation of the file that follows, whose name is durable; 0: none yet
//
// The log writes a note when the end is known: at a change to the next file, which syncs the file
// anyway before it begins the next one; at a clean end; and at a start. So it costs an appender
// nothing. A note records three facts that no other file holds:
//
//   - The newest begun file announces the next one. If the announced file is missing, it was
//     removed with all its frames.
//   - A start searches behind the end of the newest file for signs of further frames, unless the
//     note gives that same end. After a clean end it reads nothing there.
//   - A file that was not begun can hold frames only if it is the announced one.
//
// If the machine fails during the write of the note, the note may become durable while frames
// before its end do not. Its end then lies beyond the last valid frame, and the note is ignored.
// A note that does not verify is ignored too: the loss that it would have revealed goes
// unnoticed, but that takes a second damage.
const (
	noteAt   = 512
	noteSize = 32
)

// note is the content of a file's note; the zero value means no note.
type note struct {
	end   LSN
	next  uint64
	ok    bool
	clean bool // the life that wrote it ended in order
}

// lossy reports whether the newest file's life may have lost acknowledged frames, given the
// file's note and the end of its valid frames. Up to format 3 the notes of a start look like
// those of an orderly end; there they count as lossy too.
func (s segment) lossy(n note, end LSN) bool {
	ended := n.ok && n.next == 0 && n.end == end && (n.clean || s.acks == acksUnknown)
	return s.acks != acksSynced && !ended
}

func encodeNote(generation uint64, end LSN, next uint64, clean bool) []byte {
	p := make([]byte, noteSize)
	if clean {
		binary.LittleEndian.PutUint32(p[4:], 1)
	}
	binary.LittleEndian.PutUint64(p[8:], generation)
	binary.LittleEndian.PutUint64(p[16:], uint64(end))
	binary.LittleEndian.PutUint64(p[24:], next)
	binary.LittleEndian.PutUint32(p, crc32.Checksum(p[4:], castagnoli))
	return p
}

// decodeNote returns the note in p if it belongs to this generation's file.
func decodeNote(p []byte, generation uint64) note {
	if len(p) < noteSize || generation == 0 ||
		binary.LittleEndian.Uint32(p) != crc32.Checksum(p[4:noteSize], castagnoli) ||
		binary.LittleEndian.Uint64(p[8:]) != generation {
		return note{}
	}
	flags := binary.LittleEndian.Uint32(p[4:])
	n := note{
		end:   LSN(binary.LittleEndian.Uint64(p[16:])),
		next:  binary.LittleEndian.Uint64(p[24:]),
		ok:    true,
		clean: flags == 1,
	}
	if flags > 1 || n.next != 0 && (n.clean || n.next <= generation) {
		return note{}
	}
	return n
}

// writeNote writes a note without syncing it.
func (s segment) writeNote(file vfs.File, end LSN, next uint64, clean bool) error {
	if _, err := file.WriteAt(encodeNote(s.generation, end, next, clean), noteAt); err != nil {
		return fmt.Errorf("note the end of the log file %d: %w", s.generation, err)
	}
	return nil
}

// note reads the file's note.
func (r *reader) note() (note, error) {
	p := make([]byte, noteSize)
	n, err := r.file.ReadAt(p, noteAt)
	if err != nil && !errors.Is(err, io.EOF) {
		return note{}, err
	}
	return decodeNote(p[:n], r.generation), nil
}
