package interop

import (
	"encoding/binary"
	"slices"
	"strings"

	"github.com/runnel-stream/runnel/keyspace"
)

// odd draws a message that no packer writes but protobuf-java may still read. It may have fields in
// any order, twice, of another type, and unknown ones; groups as deep as allowed and deeper;
// varints longer than necessary; invalid UTF-8; and missing required fields.
func (d drawer) odd() []byte {
	var fields [][]byte
	keys, hashKeys := 1+d.IntN(4), d.IntN(4)
	for range keys {
		fields = append(fields, d.counted(1, []byte(d.oddText())))
	}
	for range hashKeys {
		fields = append(fields, d.counted(2, []byte(d.oddHashKey())))
	}
	for range d.IntN(6) {
		fields = append(fields, d.counted(3, d.oddRecord(keys, hashKeys)))
	}
	return d.shuffled(fields)
}

// once reports true for one of n draws.
func (d drawer) once(n int) bool { return d.IntN(n) == 0 }

func (d drawer) oddRecord(keys, hashKeys int) []byte {
	var fields [][]byte
	if !d.once(30) {
		fields = append(fields, d.index(1, keys))
	}
	if hashKeys > 0 && d.once(2) {
		fields = append(fields, d.index(2, hashKeys))
	}
	if !d.once(30) {
		fields = append(fields, d.counted(3, d.bytes(d.IntN(20))))
	}
	if d.once(3) {
		var tag [][]byte
		if !d.once(10) {
			tag = append(tag, d.counted(1, []byte(d.oddText())))
		}
		if d.once(2) {
			tag = append(tag, d.counted(2, []byte(d.oddText())))
		}
		fields = append(fields, d.counted(4, d.shuffled(tag)))
	}
	if d.once(5) {
		fields = append(fields, slices.Clone(fields[d.IntN(len(fields)+1)%max(1, len(fields)):])...)
	}
	return d.shuffled(fields)
}

// index returns an index into a table of length of, now and then outside of it.
func (d drawer) index(number, of int) []byte {
	at := uint64(d.IntN(of))
	switch {
	case d.once(60):
		at = uint64(of)
	case d.once(20):
		at |= 1 << 32 // the KCL uses only the low 32 bits
	case d.once(60):
		at = d.Uint64()
	}
	return append(d.varint(uint64(number)<<3), d.varint(at)...)
}

func (d drawer) oddText() string {
	if !d.once(3) {
		return []string{"key", "ключ", "鍵", "🔑", ""}[d.IntN(5)]
	}
	pieces := []string{
		"a", "\x80", "\xc3", "\xc0", "\xe2", "\x82", "\xed\xa0\x80", "\xf0\x9f", "\xf4\x90", "\xff", "é",
	}
	var text strings.Builder
	for range 1 + d.IntN(4) {
		text.WriteString(pieces[d.IntN(len(pieces))])
	}
	return text.String()
}

func (d drawer) oddHashKey() string {
	if d.once(15) {
		return []string{
			"", "-1", "x", "1e3", " 1", "340282366920938463463374607431768211456",
		}[d.IntN(6)]
	}
	return []string{
		"0", "00", "+7", "007", "340282366920938463463374607431768211455",
		keyspace.Key{Hi: d.Uint64(), Lo: d.Uint64()}.String(),
	}[d.IntN(6)]
}

// shuffled joins fields in a random order, with unknown fields between them.
func (d drawer) shuffled(fields [][]byte) []byte {
	for d.once(6) {
		fields = append(fields, d.unknown())
	}
	if d.once(3) {
		d.Shuffle(len(fields), func(i, j int) { fields[i], fields[j] = fields[j], fields[i] })
	}
	return slices.Concat(fields...)
}

func (d drawer) unknown() []byte {
	number := uint64(1 + d.IntN(8)) // a known number may get another type
	switch d.IntN(12) {
	case 0, 1, 2:
		return append(d.varint(number<<3|5), d.bytes(4)...)
	case 3, 4, 5:
		return append(d.varint(number<<3|1), d.bytes(8)...)
	case 6, 7:
		return append(d.varint((4+number)<<3), d.varint(d.Uint64())...)
	case 8:
		return d.counted(4+number, d.bytes(d.IntN(5)))
	case 9:
		return d.bytes(1 + d.IntN(3))
	default:
		return d.group(number, []int{1, 2, 3, 97, 98, 99, 100, 101}[d.IntN(8)])
	}
}

// group returns nested groups of that depth.
func (d drawer) group(number uint64, depth int) []byte {
	var inside []byte
	if depth > 1 {
		inside = d.group(number, depth-1)
	} else if d.once(2) {
		inside = d.counted(number, d.bytes(3))
	}
	end := number
	if d.once(500) {
		end++ // the end of another group
	}
	return slices.Concat(d.varint(number<<3|3), inside, d.varint(end<<3|4))
}

func (d drawer) counted(number uint64, value []byte) []byte {
	return slices.Concat(d.varint(number<<3|2), d.varint(uint64(len(value))), value)
}

// varint encodes v, sometimes longer than necessary, and seldom longer than allowed.
func (d drawer) varint(v uint64) []byte {
	b := binary.AppendUvarint(nil, v)
	if !d.once(40) {
		return b
	}
	longer := len(b) + 1 + d.IntN(4)
	if d.once(4) {
		longer = 9 + d.IntN(3)
	}
	for len(b) < longer {
		b[len(b)-1] |= 0x80
		b = append(b, 0)
	}
	return b
}
