package shardlog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
)

// A record frame is the form of a record in a segment file and in the log. Both hold the same
// bytes, so that a record is encoded and summed once. Little-endian:
//
//	offset  bytes
//	     0      4  CRC-32C of the shard's id (8 bytes) and of everything from offset 4 on
//	     4      4  length of the frame, these 28 bytes included
//	     8      8  index
//	    16      8  arrival, ms since 1970
//	    24      4  length of the partition key
//	    28         partition key, data
//
// The sum covers the shard and the index, so a frame verifies only in its own place.
const (
	frameHeader = 28
	// maxFrame limits the memory allocated for a length that was read from a file. The API's
	// largest record has 10 MiB.
	maxFrame = 32 << 20
	// maxBatch limits the frames of one Append, which become one payload of the log.
	maxBatch = 64 << 20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// frame is a decoded record frame. Its slices are part of the buffer it was read from.
type frame struct {
	index   uint64
	arrival int64
	key     []byte
	data    []byte
	size    int // of the frame
}

// frameSeed returns the checksum of a shard's id, with which the checksum of each of its frames
// begins.
func frameSeed(id ID) uint32 {
	var raw [8]byte
	binary.LittleEndian.PutUint64(raw[:], uint64(id))
	return crc32.Checksum(raw[:], castagnoli)
}

// frameSize returns the size of an entry's frame.
func frameSize(e Entry) int { return frameHeader + len(e.PartitionKey) + len(e.Data) }

// appendFrame adds the frame of a record to dst.
func appendFrame(dst []byte, seed uint32, number Number, e Entry) []byte {
	start := len(dst)
	le := binary.LittleEndian
	dst = le.AppendUint32(dst, 0)
	dst = le.AppendUint32(dst, uint32(frameSize(e)))
	dst = le.AppendUint64(dst, number.Index)
	dst = le.AppendUint64(dst, uint64(number.Arrival))
	dst = le.AppendUint32(dst, uint32(len(e.PartitionKey)))
	dst = append(dst, e.PartitionKey...)
	dst = append(dst, e.Data...)
	le.PutUint32(dst[start:], crc32.Update(seed, castagnoli, dst[start+4:]))
	return dst
}

// errShort reports that a frame does not end within the given bytes.
var errShort = errors.New("the frame is cut off")

// frameLength reads a frame's length from the frame's beginning. It returns errShort if buf is
// too short.
func frameLength(buf []byte) (int, error) {
	if len(buf) < frameHeader {
		return 0, errShort
	}
	length := binary.LittleEndian.Uint32(buf[4:])
	if length < frameHeader || length > maxFrame {
		return 0, fmt.Errorf("the frame's length is %d", length)
	}
	return int(length), nil
}

// parseFrame reads the frame at the start of buf, which must be that of the record at index. It
// returns errShort if buf holds only a part of it.
func parseFrame(buf []byte, seed uint32, index uint64) (frame, error) {
	length, err := frameLength(buf)
	if err != nil {
		return frame{}, err
	}
	if len(buf) < length {
		return frame{}, errShort
	}
	le := binary.LittleEndian
	if crc32.Update(seed, castagnoli, buf[4:length]) != le.Uint32(buf) {
		return frame{}, errors.New("the checksum does not match")
	}
	if stands := le.Uint64(buf[8:]); stands != index {
		return frame{}, fmt.Errorf("it is record %d", stands)
	}
	if key := int64(le.Uint32(buf[24:])); key > int64(length-frameHeader) {
		return frame{}, fmt.Errorf("the partition key's length is %d", key)
	}
	return readFrame(buf), nil
}

// readFrame reads an already checked frame at the start of buf.
func readFrame(buf []byte) frame {
	le := binary.LittleEndian
	length := int(le.Uint32(buf[4:]))
	split := frameHeader + int(le.Uint32(buf[24:]))
	return frame{
		index:   le.Uint64(buf[8:]),
		arrival: int64(le.Uint64(buf[16:])),
		key:     buf[frameHeader:split:split],
		data:    buf[split:length:length],
		size:    length,
	}
}
