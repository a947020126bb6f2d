package kinesis

import (
	"bytes"
	"encoding/base64"
	"testing"
)

// Compares appendBlob with the standard library: the vector instructions must change nothing around
// their part of the buffer.
func FuzzAppendBlob(f *testing.F) {
	for n := range 200 {
		data := bytes.Repeat([]byte{byte(n), 0xff, 0x3e}, n)[:n]
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		text := base64.StdEncoding.EncodeToString(data)
		const around = "other bytes"
		dst := append(make([]byte, 0, 4096+2*len(data)), around...)
		whole := dst[:cap(dst)]
		behind := whole[len(around)+len(text)+2:]
		for i := range behind {
			behind[i] = 0xa5
		}
		if got := string(appendBlob(dst, data)); got != around+`"`+text+`"` {
			t.Fatalf("%x is written as %s", data, got)
		}
		if bytes.Count(behind, []byte{0xa5}) != len(behind) {
			t.Fatalf("writing %d bytes changes the bytes behind them", len(data))
		}
	})
}
