package kinesis

import "github.com/runnel-stream/runnel/internal/cboritem"

// appendCBORHead appends the head of an item: its major type and its value or length.
func appendCBORHead(dst []byte, major byte, argument int) []byte {
	return cboritem.AppendHead(dst, major, uint64(argument))
}

func appendCBORText(dst []byte, text string) []byte {
	return cboritem.AppendString(dst, cboritem.Text, text)
}

func appendCBORInt(dst []byte, n int64) []byte {
	if n < 0 {
		return cboritem.AppendHead(dst, cboritem.Negative, uint64(-1-n))
	}
	return cboritem.AppendHead(dst, cboritem.Unsigned, uint64(n))
}

// appendCBORTime appends a time in ms, as AWS does: tag 1 and a whole number (LocalStack's
// tests, run against AWS).
func appendCBORTime(dst []byte, ms int64) []byte {
	return appendCBORInt(append(dst, cboritem.Tag<<5|1), ms)
}
