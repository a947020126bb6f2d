package wal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/runnel-stream/runnel/internal/vfs"
)

// A note stands in a log file's first block, in a sector of its own, so that writing it cannot
// harm what is beside it. It tells where the file ends, and in which file the log goes on. In
// little-endian numbers:
//
//	[0, 4)   CRC-32C of the rest
//	[4, 8)   1 if the log has ended there in order, and all of it is synced; else 0
//	[8, 16)  generation of the file that it stands in
//	[16, 24) LSN at which that file ends
//	[24, 32) generation of the file that goes on there, whose name is durable; 0: none yet
//
// It is written when the end is known: at a change to the next file, which syncs the file
// anyway and begins the next one only then; at a clean end; and at a start. So it costs an
// appender nothing, and it tells what nothing else in the folder does:
//
//   - The newest file that was begun announces the next one. If that one is not there, it was
//     taken away, with all that it held.
//   - A start looks behind the end of the newest file for what shows that there was more, but
//     not if that is the end that the note tells. After a clean end it reads nothing.
//   - A file that was not begun can hold something only if it is the announced one.
//
// The frames before the end may have been lost if the machine failed while the note was
// written: then it tells an end that is not reached, and means nothing. A note that does not
// verify means nothing either; what it would have told goes unnoticed, but a second damage is
// needed for that.
const (
	noteAt   = 512
	noteSize = 32
)

// note is the content of a file's note; zero if there is none.
type note struct {
	end   LSN
	next  uint64
	ok    bool
	clean bool // the end is that of a life that ended in order
}

// lossy reports whether the life that wrote the newest file, with this note and frames up to end,
// may have lost frames that it acknowledged. Up to format 3 the notes of a start are like those of
// an end in order: there they count as well.
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

// decodeNote returns the note in p, if it is one of this generation's file.
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

// writeNote writes a note, and does not sync it.
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
