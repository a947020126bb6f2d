package aggregate

import (
	"crypto/sha256"
	"encoding/binary"
)

// Lane names the records that keep their order among themselves, those of one partition key and
// one explicit hash key, by a hash of 128 bits.
type Lane [16]byte

// LaneOf returns the lane of a partition key and an explicit hash key, "" if there is none: the
// first 16 bytes of the SHA-256 of the partition key's length as a varint, the partition key
// and the explicit hash key. It is part of the format, since sinks keep lanes. MD5 would do but
// for this: two keys that are made to collide there would share a lane, and lose records.
func LaneOf(partitionKey, explicitHashKey string) Lane {
	var buffer [1200]byte // 256 characters, 39 digits and the length
	b := binary.AppendUvarint(buffer[:0], uint64(len(partitionKey)))
	b = append(b, partitionKey...)
	b = append(b, explicitHashKey...)
	sum := sha256.Sum256(b)
	return Lane(sum[:16])
}

// Lane returns the lane of the unit that begins with record: the record's own, or, if the unit
// is unordered, one that no other unit of its producer has.
func (u Unit) Lane(record Record) Lane {
	if u.Unordered {
		return laneOfNumber(u.Number)
	}
	return LaneOf(record.PartitionKey, record.ExplicitHashKey)
}

// laneOfNumber is the lane of an unordered unit. With every unit a lane of its own, a lane's
// highest number is the set of numbers.
func laneOfNumber(number uint64) (l Lane) {
	binary.BigEndian.PutUint64(l[8:], number)
	return l
}
