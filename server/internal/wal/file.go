package wal

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"path"
	"strconv"
	"strings"

	"github.com/runnel-stream/runnel/internal/vfs"
)

// A log file begins with a block of its own; the frames follow. In little-endian numbers:
//
//	[0, 8)   "runnelWL"
//	[8, 12)  version of the file's format, 3
//	[12, 16) CRC-32C of the rest of the first 48 bytes
//	[16, 24) generation, which is the file's name too
//	[24, 32) LSN of the first frame
//	[32, 40) length of the file when it was made: a shorter one was cut off
//	[40, 48) acknowledgement of its frames: 1 after the sync, 2 possibly before
//
// Version 2 ended at byte 40, and version 1 at byte 32, without the length.
//
// A file was not begun if its block does not verify, or holds another generation than the file's
// name. Its content then belongs to an earlier life.
const (
	blockSize   = 4096
	blockUsed   = 48
	blockUsed1  = 32 // in version 1
	blockUsed2  = 40
	blockMagic  = "runnelWL"
	fileVersion = 3
	fileSuffix  = ".wal"
	walDir      = "wal"
)

// segment is a log file with a durable first block; its first frame is at LSN start.
type segment struct {
	generation uint64
	start      LSN
	size       int64
	made       int64 // the length in its first block; 0 in version 1
	acks       acks  // unknown before version 3
}

// acks is the time at which a life acknowledges frames.
type acks uint64

const (
	acksUnknown acks = iota
	acksSynced       // after they were synced
	acksEarly        // once they were written: Config.SyncInterval
)

// logFile is the file that the committer writes.
type logFile struct {
	segment
	vfs.File
	off   int64 // where the next frame goes
	ready int64 // the bytes before it were written at least once: see aheadSize
	known bool  // its first block is durable, and Log.mu.segments has it
}

func fileName(dir string, generation uint64) string {
	return path.Join(dir, walDir, fmt.Sprintf("%012d%s", generation, fileSuffix))
}

// generationOf returns the generation in a base name.
func generationOf(name string) (uint64, bool) {
	digits, ok := strings.CutSuffix(name, fileSuffix)
	if !ok || len(digits) < 12 {
		return 0, false
	}
	generation, err := strconv.ParseUint(digits, 10, 64)
	ok = err == nil && generation > 0 && name == path.Base(fileName("", generation))
	return generation, ok
}

// version returns the version of the segment's first block, and the bytes that it uses.
func (s segment) version() (version uint32, used int) {
	switch {
	case s.made == 0:
		return 1, blockUsed1
	case s.acks == acksUnknown:
		return 2, blockUsed2
	}
	return fileVersion, blockUsed
}

// encodeBlock returns the first block of a file, in the oldest version that can hold the
// segment's fields.
func encodeBlock(s segment) []byte {
	p := make([]byte, blockSize)
	copy(p, blockMagic)
	version, used := s.version()
	binary.LittleEndian.PutUint32(p[8:], version)
	binary.LittleEndian.PutUint64(p[16:], s.generation)
	binary.LittleEndian.PutUint64(p[24:], uint64(s.start))
	binary.LittleEndian.PutUint64(p[32:], uint64(s.made))
	binary.LittleEndian.PutUint64(p[40:], uint64(s.acks))
	binary.LittleEndian.PutUint32(p[12:], blockSum(p[:used]))
	return p
}

// blockSum returns the checksum of a block's used part, p.
func blockSum(p []byte) uint32 {
	return crc32.Update(crc32.Checksum(p[:12], castagnoli), castagnoli, p[16:])
}

// decodeBlock returns a file's first block as a segment, without the file's size. ok is false if
// the file was not begun with this generation.
func decodeBlock(p []byte, generation uint64) (s segment, ok bool) {
	if len(p) < blockUsed1 || string(p[:8]) != blockMagic {
		return s, false
	}
	used := blockUsed
	switch binary.LittleEndian.Uint32(p[8:]) {
	case 1:
		used = blockUsed1
	case 2:
		used = blockUsed2
	case fileVersion:
	default:
		return s, false
	}
	if len(p) < used || binary.LittleEndian.Uint32(p[12:]) != blockSum(p[:used]) ||
		binary.LittleEndian.Uint64(p[16:]) != generation {
		return s, false
	}
	found := segment{generation: generation, start: LSN(binary.LittleEndian.Uint64(p[24:]))}
	if used >= blockUsed2 {
		found.made = int64(binary.LittleEndian.Uint64(p[32:]))
		if found.made < minFileSize {
			return s, false
		}
	}
	if used >= blockUsed {
		found.acks = acks(binary.LittleEndian.Uint64(p[40:]))
		if found.acks != acksSynced && found.acks != acksEarly {
			return s, false
		}
	}
	return found, true
}
