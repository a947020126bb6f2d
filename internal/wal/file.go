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
//	[8, 12)  version of the file's format, 2
//	[12, 16) CRC-32C of the rest of the first 40 bytes
//	[16, 24) generation, which is the file's name too
//	[24, 32) LSN of the first frame
//	[32, 40) length of the file when it was made: a shorter one was cut off
//
// Version 1 ended at byte 32, without the length.
//
// A file whose block does not verify, or is of another generation than its name, has not been
// begun: what it holds is of an earlier life.
const (
	blockSize   = 4096
	blockUsed   = 40
	blockUsed1  = 32 // in version 1
	blockMagic  = "runnelWL"
	fileVersion = 2
	fileSuffix  = ".wal"
	walDir      = "wal"
)

// segment is a log file that was begun, durably: its frames start at start.
type segment struct {
	generation uint64
	start      LSN
	size       int64
	made       int64 // the length that its first block tells; 0 in version 1
}

// logFile is the file that the committer writes.
type logFile struct {
	segment
	vfs.File
	off   int64 // where the next frame goes
	ready int64 // the bytes before it have been written: see aheadSize
	known bool  // its first block is durable, and Log.mu.segments has it
}

func fileName(dir string, generation uint64) string {
	return path.Join(dir, walDir, fmt.Sprintf("%012d%s", generation, fileSuffix))
}

// generationOf returns the generation that a base name tells.
func generationOf(name string) (uint64, bool) {
	digits, ok := strings.CutSuffix(name, fileSuffix)
	if !ok || len(digits) < 12 {
		return 0, false
	}
	generation, err := strconv.ParseUint(digits, 10, 64)
	ok = err == nil && generation > 0 && name == path.Base(fileName("", generation))
	return generation, ok
}

// encodeBlock returns the first block of a file; of version 1 if it does not know the length.
func encodeBlock(s segment) []byte {
	p := make([]byte, blockSize)
	copy(p, blockMagic)
	version, used := uint32(fileVersion), blockUsed
	if s.made == 0 {
		version, used = 1, blockUsed1
	}
	binary.LittleEndian.PutUint32(p[8:], version)
	binary.LittleEndian.PutUint64(p[16:], s.generation)
	binary.LittleEndian.PutUint64(p[24:], uint64(s.start))
	binary.LittleEndian.PutUint64(p[32:], uint64(s.made))
	binary.LittleEndian.PutUint32(p[12:], blockSum(p[:used]))
	return p
}

// blockSum returns the checksum of a block's used part, p.
func blockSum(p []byte) uint32 {
	return crc32.Update(crc32.Checksum(p[:12], castagnoli), castagnoli, p[16:])
}

// decodeBlock returns a file's first LSN, and its length as far as that is known, if it was
// begun as this generation.
func decodeBlock(p []byte, generation uint64) (start LSN, made int64, ok bool) {
	if len(p) < blockUsed1 || string(p[:8]) != blockMagic {
		return 0, 0, false
	}
	used := blockUsed
	switch binary.LittleEndian.Uint32(p[8:]) {
	case 1:
		used = blockUsed1
	case fileVersion:
	default:
		return 0, 0, false
	}
	if len(p) < used || binary.LittleEndian.Uint32(p[12:]) != blockSum(p[:used]) ||
		binary.LittleEndian.Uint64(p[16:]) != generation {
		return 0, 0, false
	}
	if used == blockUsed {
		made = int64(binary.LittleEndian.Uint64(p[32:]))
		if made < minFileSize {
			return 0, 0, false
		}
	}
	return LSN(binary.LittleEndian.Uint64(p[24:])), made, true
}
