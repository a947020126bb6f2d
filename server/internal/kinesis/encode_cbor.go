package kinesis

import (
	"encoding/binary"

	"github.com/runnel-stream/runnel/internal/cboritem"
)

// appendCBORHead appends the head of an item: its major type and its value or length.
func appendCBORHead(dst []byte, major byte, argument int) []byte {
	return appendCBORHead64(dst, major, uint64(argument))
}

func appendCBORHead64(dst []byte, major byte, argument uint64) []byte {
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

// appendCBORString appends a byte or text string.
func appendCBORString[S []byte | string](dst []byte, major byte, s S) []byte {
	return append(appendCBORHead(dst, major, len(s)), s...)
}

func appendCBORText(dst []byte, text string) []byte {
	return appendCBORString(dst, cboritem.Text, text)
}

func appendCBORInt(dst []byte, n int64) []byte {
	if n < 0 {
		return appendCBORHead64(dst, cboritem.Negative, uint64(-1-n))
	}
	return appendCBORHead64(dst, cboritem.Unsigned, uint64(n))
}

// appendCBORTime appends a time in ms, as AWS does: tag 1 and a whole number (LocalStack's
// tests, run against AWS).
func appendCBORTime(dst []byte, ms int64) []byte {
	return appendCBORInt(append(dst, cboritem.Tag<<5|1), ms)
}
