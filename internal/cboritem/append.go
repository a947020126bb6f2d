package cboritem

import "encoding/binary"

// AppendHead appends the head of an item: its major type and its value or length, in the shortest
// form.
func AppendHead(dst []byte, major byte, argument uint64) []byte {
	major <<= 5
	switch {
	case argument < 24:
		return append(dst, major|byte(argument))
	case argument < 1<<8:
		return append(dst, major|24, byte(argument))
	case argument < 1<<16:
		return binary.BigEndian.AppendUint16(append(dst, major|25), uint16(argument))
	case argument < 1<<32:
		return binary.BigEndian.AppendUint32(append(dst, major|26), uint32(argument))
	default:
		return binary.BigEndian.AppendUint64(append(dst, major|27), argument)
	}
}

// AppendString appends a byte or text string.
func AppendString[S []byte | string](dst []byte, major byte, s S) []byte {
	return append(AppendHead(dst, major, uint64(len(s))), s...)
}
