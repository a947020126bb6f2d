package wire

import (
	"bytes"
	"encoding/base64"
	"testing"
)

// FuzzScanBlob compares the scanner's blobs with the standard library's: the vector instructions
// must change nothing around their part of the buffer.
func FuzzScanBlob(f *testing.F) {
	for n := range 200 {
		data := bytes.Repeat([]byte{byte(n), 0xff, 0x3e}, n)[:n]
		f.Add(data, byte('='))
		f.Add([]byte(base64.StdEncoding.EncodeToString(data)), byte('\n'))
	}
	f.Fuzz(func(t *testing.T, data []byte, odd byte) {
		text := base64.StdEncoding.EncodeToString(data)
		checkScannedBlob(t, text)
		checkScannedBlob(t, string(data)) // which may be no base64
		if len(text) > 0 {                // nor is this, mostly
			at := int(odd) % len(text)
			checkScannedBlob(t, text[:at]+string(odd)+text[at+1:])
		}
	})
}

// checkScannedBlob scans a text as a blob, after another blob in the same buffer.
func checkScannedBlob(t *testing.T, text string) {
	if bytes.IndexByte([]byte(text), '"') >= 0 {
		return
	}
	s := newScanner([]byte(`"Zmlyc3Q=""` + text + `""dGhpcmQ="`))
	first, ok := s.blob()
	if !ok || string(first) != "first" {
		t.Fatalf("the first blob is read as %q, %v", first, ok)
	}
	want, err := fromBase64([]byte(text))
	got, ok := s.blob()
	if ok != (err == nil) || !bytes.Equal(got, want) && ok {
		t.Fatalf("%q is read as %x, %v; want %x, %v", text, got, ok, want, err)
	}
	if !ok {
		return
	}
	third, ok := s.blob()
	if !ok || string(third) != "third" || string(first) != "first" || !bytes.Equal(got, want) {
		t.Fatalf("beside %q are %q and %q, and it is then %x", text, first, third, got)
	}
}
