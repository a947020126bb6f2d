package aggregate

import "encoding/binary"

// The part of the protobuf encoding that the format needs. It is read as protobuf-java reads it, so
// that Open and the KCL agree on every input:
//
//   - a varint has at most ten bytes, and of tags and lengths only the low 32 bits count;
//   - a field of an unknown number, or of a known number and another wire type, is skipped;
//   - groups are skipped, nested to maxDepth;
//   - field number 0, wire types 6 and 7, an end of group without its start, and a field that
//     reaches beyond its frame, make the message invalid.

const (
	wireVarint     = 0
	wireFixed64    = 1
	wireBytes      = 2
	wireStartGroup = 3
	wireEndGroup   = 4
	wireFixed32    = 5
)

// maxDepth is CodedInputStream's limit on messages and groups inside one another.
const maxDepth = 100

// field is one field of a message: number is set for a varint, bytes for a field with a length.
type field struct {
	tag    uint32
	number uint64
	bytes  []byte
}

// next reads the first field of b and returns the bytes behind it. depth is the number of messages
// and groups around b.
func next(b []byte, depth int) (f field, rest []byte, ok bool) {
	tag, b, ok := varint(b)
	if !ok {
		return f, nil, false
	}
	f.tag = uint32(tag)
	if f.tag>>3 == 0 {
		return f, nil, false
	}
	switch f.tag & 7 {
	case wireVarint:
		f.number, b, ok = varint(b)
	case wireBytes:
		f.bytes, b, ok = counted(b)
	case wireFixed64:
		b, ok = skip(b, 8)
	case wireFixed32:
		b, ok = skip(b, 4)
	case wireStartGroup:
		b, ok = skipGroup(b, f.tag, depth)
	default:
		ok = false
	}
	return f, b, ok
}

// varint reads at most ten bytes; bits beyond the 64th are dropped.
func varint(b []byte) (v uint64, rest []byte, ok bool) {
	for i := range min(len(b), binary.MaxVarintLen64) {
		v |= uint64(b[i]&0x7f) << (7 * i)
		if b[i] < 0x80 {
			return v, b[i+1:], true
		}
	}
	return 0, nil, false
}

// counted reads a length and so many bytes.
func counted(b []byte) (value, rest []byte, ok bool) {
	size, b, ok := varint(b)
	n := int64(int32(size)) //nolint:gosec // as Java casts it
	if !ok || n < 0 || n > int64(len(b)) {
		return nil, nil, false
	}
	return b[:n:n], b[n:], true
}

func skip(b []byte, n int) (rest []byte, ok bool) {
	if len(b) < n {
		return nil, false
	}
	return b[n:], true
}

func skipGroup(b []byte, start uint32, depth int) (rest []byte, ok bool) {
	if depth >= maxDepth {
		return nil, false
	}
	end := start&^7 | wireEndGroup
	for len(b) > 0 {
		if tag, after, ok := varint(b); ok && uint32(tag) == end {
			return after, true
		}
		if _, b, ok = next(b, depth+1); !ok {
			return nil, false
		}
	}
	return nil, false
}

// appendCounted appends a field with a length. Tags of this format have one byte.
func appendCounted[T string | []byte](dst []byte, tag byte, value T) []byte {
	dst = append(dst, tag)
	dst = binary.AppendUvarint(dst, uint64(len(value)))
	return append(dst, value...)
}

// sizeCounted is the size of appendCounted's output for a value of n bytes.
func sizeCounted(n int) int { return 1 + sizeVarint(uint64(n)) + n }

// sizeVarint is the size of v as a varint.
func sizeVarint(v uint64) int {
	n := 1
	for ; v >= 0x80; v >>= 7 {
		n++
	}
	return n
}
