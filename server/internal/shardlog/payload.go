package shardlog

import (
	"encoding/binary"
	"fmt"
)

// The kind of a log frame of wal.KindRecords: its first byte.
const (
	opBatch = 1 // shard, first index, arrival, count, record frames
	opTrim  = 2 // shard, the oldest remaining index
	opSkip  = 3 // amount, count, then for each shard: shard, the index of its next record
)

// Sizes of the payloads' fixed parts.
const (
	batchHeader = 1 + 8 + 8 + 8 + 4
	trimSize    = 1 + 8 + 8
)

// batch is the records that one Append adds to a shard. It is immutable.
type batch struct {
	first   uint64
	count   int
	arrival int64  // of each of its records
	frames  []byte // count record frames, in order
	held    int    // bytes to release to the log after the batch is drained
}

// end is the index after the batch's last record.
func (b *batch) end() uint64 { return b.first + uint64(b.count) }

// appendBatchHeader adds the part of a batch's payload that precedes its frames.
func appendBatchHeader(dst []byte, id ID, b *batch) []byte {
	le := binary.LittleEndian
	dst = append(dst, opBatch)
	dst = le.AppendUint64(dst, uint64(id))
	dst = le.AppendUint64(dst, b.first)
	dst = le.AppendUint64(dst, uint64(b.arrival))
	return le.AppendUint32(dst, uint32(b.count))
}

// decodeBatch reads a batch's payload and checks every frame of it. The batch keeps the payload.
func decodeBatch(payload []byte) (ID, *batch, error) {
	if len(payload) < batchHeader || payload[0] != opBatch {
		return 0, nil, fmt.Errorf("%w: a batch of %d bytes", ErrFormat, len(payload))
	}
	le := binary.LittleEndian
	id := ID(le.Uint64(payload[1:]))
	b := &batch{
		first:   le.Uint64(payload[9:]),
		arrival: int64(le.Uint64(payload[17:])),
		count:   int(le.Uint32(payload[25:])),
		frames:  payload[batchHeader:],
	}
	if b.count == 0 || b.first == 0 || b.first+uint64(b.count) < b.first {
		return 0, nil, fmt.Errorf("%w: shard %d, a batch of %d records from %d on",
			ErrFormat, id, b.count, b.first)
	}
	rest, seed := b.frames, frameSeed(id)
	for index := b.first; index < b.end(); index++ {
		f, err := parseFrame(rest, seed, index)
		if err != nil {
			return 0, nil, fmt.Errorf("%w: shard %d, record %d: %w", ErrFormat, id, index, err)
		}
		if f.arrival != b.arrival {
			return 0, nil, fmt.Errorf("%w: shard %d, record %d: arrival %d in a batch of %d",
				ErrFormat, id, index, f.arrival, b.arrival)
		}
		rest = rest[f.size:]
	}
	if len(rest) > 0 {
		return 0, nil, fmt.Errorf("%w: shard %d: %d bytes after the batch's last record",
			ErrFormat, id, len(rest))
	}
	return id, b, nil
}

// after returns the part of the batch that begins with the record at index.
func (b *batch) after(index uint64) *batch {
	if index <= b.first {
		return b
	}
	cut := *b
	cut.count -= int(index - b.first)
	cut.first = index
	cut.frames = skipFrames(b.frames, int(index-b.first))
	return &cut
}

// skipFrames returns the frames behind the first n, which were checked before.
func skipFrames(frames []byte, n int) []byte {
	for range n {
		frames = frames[binary.LittleEndian.Uint32(frames[4:]):]
	}
	return frames
}

func appendTrim(dst []byte, id ID, oldest uint64) []byte {
	dst = append(dst, opTrim)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(id))
	return binary.LittleEndian.AppendUint64(dst, oldest)
}

func decodeTrim(payload []byte) (ID, uint64, error) {
	if len(payload) != trimSize || payload[0] != opTrim {
		return 0, 0, fmt.Errorf("%w: a trim of %d bytes", ErrFormat, len(payload))
	}
	le := binary.LittleEndian
	return ID(le.Uint64(payload[1:])), le.Uint64(payload[9:]), nil
}
