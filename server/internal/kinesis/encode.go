package kinesis

import (
	"encoding/json"
	"slices"
	"strconv"

	"github.com/fxamacker/cbor/v2"
	"github.com/segmentio/asm/base64"

	"github.com/runnel-stream/runnel/internal/wire"
)

// encoded is an answer that encodes itself: a frequent one, for which encoding/json takes too long.
// Another is reading.
type encoded interface {
	encode(format wire.Format) []byte
}

// encode writes an answer. The names of the members are those of encoding/json in both formats.
func encode(call *wire.Call, out any) ([]byte, error) {
	switch out := out.(type) {
	case nil:
		return nil, nil
	case encoded:
		return out.encode(call.Format), nil
	case *reading:
		return out.encode(call)
	}
	return encodeDocument(call.Format, out)
}

func encodeDocument(format wire.Format, out any) ([]byte, error) {
	if format == wire.CBOR {
		return cbor.Marshal(out)
	}
	return json.Marshal(out)
}

// appendString appends a JSON string.
func appendString(dst []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= 0x7f || c == '"' || c == '\\' {
			quoted, err := json.Marshal(s)
			if err != nil { // a string can always be written
				return append(dst, `""`...)
			}
			return append(dst, quoted...)
		}
	}
	dst = append(dst, '"')
	dst = append(dst, s...)
	return append(dst, '"')
}

// appendBlob appends data as a JSON string of base64.
func appendBlob(dst, data []byte) []byte {
	size := base64.StdEncoding.EncodedLen(len(data))
	dst = append(slices.Grow(dst, size+2), '"')
	at := len(dst)
	dst = dst[:at+size]
	base64.StdEncoding.Encode(dst[at:], data)
	return append(dst, '"')
}

// appendSeconds appends a time in ms as seconds with three decimals. Clients that read the
// number as text choke on an exponent.
func appendSeconds(dst []byte, ms int64) []byte {
	if ms < 0 {
		dst = append(dst, '-')
		ms = -ms
	}
	dst = strconv.AppendInt(dst, ms/1000, 10)
	ms %= 1000
	return append(dst, '.', '0'+byte(ms/100), '0'+byte(ms/10%10), '0'+byte(ms%10))
}
