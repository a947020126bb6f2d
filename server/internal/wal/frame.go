package wal

import (
	"encoding/binary"
	"hash/crc32"
)

// A frame is, in little-endian numbers, at a place that is a multiple of 8 bytes:
//
//	[0, 4)   CRC-32C of the file's generation, the frame's LSN, and bytes [4, 24)
//	[4, 8)   CRC-32C of the payload
//	[8, 12)  length of the payload
//	[12]     kind, never 0; then three bytes 0
//	[16, 24) the LSN up to which the log was synced when the frame was written
//	[24, …)  the payload, and zeros up to the next multiple of 8
//
// The payload has its own checksum so that appenders compute it in parallel, outside every lock.
// The header's checksum needs the generation and the LSN, which are known only at the write; it
// costs the committer a few bytes. It covers the payload's checksum, so a payload cannot be taken
// for one of another place or of another life of the file.
const (
	frameHeader = 24
	frameAlign  = 8
	maxPayload  = 1 << 30
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

type frameInfo struct {
	kind   Kind
	length int // of the payload
	sum    uint32
	synced LSN
}

// frameSize returns the bytes that a frame takes in the log.
func frameSize(payload int) int {
	return (frameHeader + payload + frameAlign - 1) &^ (frameAlign - 1)
}

// putFrame lays a frame into dst, of frameSize bytes, except for the fields that seal sets.
func putFrame(dst []byte, kind Kind, sum uint32, payload []byte) {
	binary.LittleEndian.PutUint32(dst[4:], sum)
	binary.LittleEndian.PutUint32(dst[8:], uint32(len(payload)))
	binary.LittleEndian.PutUint32(dst[12:], uint32(kind))
	n := copy(dst[frameHeader:], payload)
	clear(dst[frameHeader+n:])
}

// sealer computes the checksums of frame headers of one file.
type sealer struct {
	scratch [16 + frameHeader - 4]byte
}

func (s *sealer) sum(generation uint64, at LSN, header []byte) uint32 {
	binary.LittleEndian.PutUint64(s.scratch[0:], generation)
	binary.LittleEndian.PutUint64(s.scratch[8:], uint64(at))
	copy(s.scratch[16:], header[4:frameHeader])
	return crc32.Checksum(s.scratch[:], castagnoli)
}

// seal completes the frame that begins p, and returns the frame's size.
func (s *sealer) seal(p []byte, generation uint64, at, synced LSN) int {
	binary.LittleEndian.PutUint64(p[16:], uint64(synced))
	binary.LittleEndian.PutUint32(p, s.sum(generation, at, p))
	return sizeOf(p)
}

// sizeOf returns the size of the frame that begins p.
func sizeOf(p []byte) int { return frameSize(int(binary.LittleEndian.Uint32(p[8:]))) }

// open decodes the frame header at a place and reports whether it verifies.
func (s *sealer) open(p []byte, generation uint64, at LSN) (frameInfo, bool) {
	info := frameInfo{
		kind:   Kind(p[12]),
		length: int(binary.LittleEndian.Uint32(p[8:])),
		sum:    binary.LittleEndian.Uint32(p[4:]),
		synced: LSN(binary.LittleEndian.Uint64(p[16:])),
	}
	ok := info.kind != 0 && info.synced <= at && info.length <= maxPayload &&
		binary.LittleEndian.Uint32(p) == s.sum(generation, at, p)
	return info, ok
}
