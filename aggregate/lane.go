package aggregate

import (
	"crypto/sha256"
	"encoding/binary"
)

// Lane names a sequence of records that keep their order: those with one partition key and one
// explicit hash key. It is a hash of 128 bits.
type Lane [16]byte

// LaneOf returns the lane of a partition key and an explicit hash key, which is "" for none. It is
// the first 16 bytes of the SHA-256 of the partition key's length as a varint, the partition key
// and the explicit hash key. This is part of the format, since sinks store lanes. MD5 is too weak:
// two keys with a forged collision would share a lane, and lose records.
func LaneOf(partitionKey, explicitHashKey string) Lane {
	var buffer [1200]byte // 256 characters, 39 digits and the length
	b := binary.AppendUvarint(buffer[:0], uint64(len(partitionKey)))
	b = append(b, partitionKey...)
	b = append(b, explicitHashKey...)
	sum := sha256.Sum256(b)
	return Lane(sum[:16])
}

// Lane returns the lane of the unit that begins with record: the record's own lane or, for an
// unordered unit, a lane that no other unit of its producer has.
func (u Unit) Lane(record Record) Lane {
	if u.Unordered {
		return laneOfNumber(u.Number)
	}
	return LaneOf(record.PartitionKey, record.ExplicitHashKey)
}

// laneOfNumber is the lane of an unordered unit. Since each such unit has its own lane, the lanes'
// highest numbers are the set of all numbers seen.
func laneOfNumber(number uint64) (l Lane) {
	binary.BigEndian.PutUint64(l[8:], number)
	return l
}
