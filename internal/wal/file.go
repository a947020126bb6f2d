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
//	[8, 12)  version of the file's format, 1
//	[12, 16) CRC-32C of the rest of the first 32 bytes
//	[16, 24) generation, which is the file's name too
//	[24, 32) LSN of the first frame
//
// A file whose block does not verify, or is of another generation than its name, has not been
// begun: what it holds is of an earlier life.
const (
	blockSize   = 4096
	blockUsed   = 32
	blockMagic  = "runnelWL"
	fileVersion = 1
	fileSuffix  = ".wal"
	walDir      = "wal"
)

// segment is a log file that was begun, durably: its frames start at start.
type segment struct {
	generation uint64
	start      LSN
	size       int64
}

// logFile is the file that the committer writes.
type logFile struct {
	segment
	vfs.File
	off   int64 // where the next frame goes
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

func encodeBlock(generation uint64, start LSN) []byte {
	p := make([]byte, blockSize)
	copy(p, blockMagic)
	binary.LittleEndian.PutUint32(p[8:], fileVersion)
	binary.LittleEndian.PutUint64(p[16:], generation)
	binary.LittleEndian.PutUint64(p[24:], uint64(start))
	binary.LittleEndian.PutUint32(p[12:], blockSum(p))
	return p
}

func blockSum(p []byte) uint32 {
	return crc32.Update(crc32.Checksum(p[:12], castagnoli), castagnoli, p[16:blockUsed])
}

// decodeBlock returns a file's first LSN if it was begun as this generation.
func decodeBlock(p []byte, generation uint64) (LSN, bool) {
	ok := len(p) >= blockUsed && string(p[:8]) == blockMagic &&
		binary.LittleEndian.Uint32(p[8:]) == fileVersion &&
		binary.LittleEndian.Uint32(p[12:]) == blockSum(p) &&
		binary.LittleEndian.Uint64(p[16:]) == generation
	if !ok {
		return 0, false
	}
	return LSN(binary.LittleEndian.Uint64(p[24:])), true
}
