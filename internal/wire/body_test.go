package wire

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
)

func zip(t testing.TB, plain string) string {
	t.Helper()
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := io.WriteString(w, plain); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return packed.String()
}

func TestGzip(t *testing.T) {
	noise := make([]byte, 1<<20)
	rand.NewChaCha8([32]byte{}).Read(noise)
	two := zip(t, "ab") + zip(t, "cd")
	broken := []byte(zip(t, string(noise)))
	broken[len(broken)/2] ^= 1
	for _, c := range []struct {
		name, encoding, packed string
		status                 int
		body                   string // the call's body
	}{
		{"a document", "gzip", zip(t, `{"a":1}`), 200, `{"a":1}`},
		{"in capitals", "GZIP", zip(t, `{"a":1}`), 200, `{"a":1}`},
		{"by its old name", "x-gzip", zip(t, `{"a":1}`), 200, `{"a":1}`},
		{"as it is", "identity", `{"a":1}`, 200, `{"a":1}`},
		{"noise", "gzip", zip(t, string(noise)), 200, string(noise)},
		{"two streams are one", "gzip", two, 200, "abcd"},
		{"the longest", "gzip", zip(t, strings.Repeat("x", MaxBody)), 200, strings.Repeat("x", MaxBody)},
		{"a bomb", "gzip", zip(t, strings.Repeat("x", MaxBody+1)), 413, ""},
		{"nothing", "gzip", zip(t, ""), 400, ""},
		{"plain text", "gzip", `{"a":1}`, 400, ""},
		{"a half", "gzip", zip(t, string(noise))[:1000], 400, ""},
		{"no checksum", "gzip", zip(t, "x")[:len(zip(t, "x"))-1], 400, ""},
		{"broken", "gzip", string(broken), 400, ""},
		{"half a second one", "gzip", zip(t, "x") + "\x1f\x8b\x08\x3800000000", 400, ""},
		{"rubbish after it", "gzip", zip(t, "x") + "rubbish", 400, ""},
		{"two encodings", "gzip, gzip", zip(t, zip(t, "x")), 400, ""},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/",
			strings.NewReader(c.packed))
		r.Header.Set("Content-Type", json11)
		r.Header.Set("X-Amz-Target", "Kinesis_20131202.Op")
		r.Header.Set("Content-Encoding", c.encoding)
		w := httptest.NewRecorder()
		x, err := Begin(w, r, Checks{})
		if err != nil {
			if w.Code != c.status || !errors.Is(err, ErrAnswered) {
				t.Errorf("%s: %d, %v; want %d", c.name, w.Code, err, c.status)
			}
			if c.status == http.StatusBadRequest &&
				!strings.Contains(w.Body.String(), `"SerializationException"`) {
				t.Errorf("%s: %s", c.name, w.Body)
			}
			continue
		}
		if c.status != http.StatusOK || string(x.Call.Body) != c.body {
			t.Errorf("%s: %d bytes, want %d", c.name, len(x.Call.Body), len(c.body))
		}
		x.Close()
	}
}

// FuzzGunzip compares with a reader and a buffer that were never used before.
func FuzzGunzip(f *testing.F) {
	f.Add([]byte(zip(f, "hello")))
	f.Add([]byte(zip(f, "a") + zip(f, "b")))
	f.Add([]byte(zip(f, "a") + "\x1f\x8b\x08\x3800000000")) // cut off within a name
	f.Fuzz(func(t *testing.T, packed []byte) {
		body, err := gunzip(t.Context(), packed, nil)
		if err == nil {
			defer giveBack(body)
		}
		r, wantErr := gzip.NewReader(bytes.NewReader(packed))
		var want []byte
		if wantErr == nil {
			want, wantErr = io.ReadAll(r)
		}
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("%v, want %v", err, wantErr)
		}
		if err == nil && !bytes.Equal(*body, want) {
			t.Fatalf("%d bytes, want %d", len(*body), len(want))
		}
	})
}

// FuzzReadBody compares with io.ReadAll, over readers that give the bytes piecemeal, and
// buffers that come back dirty.
func FuzzReadBody(f *testing.F) {
	f.Add([]byte("hello"), 5, uint8(0))
	f.Add(bytes.Repeat([]byte("x"), 70_000), -1, uint8(3))
	f.Fuzz(func(t *testing.T, data []byte, length int, how uint8) {
		length = max(-1, min(length, len(data)+3))
		var r io.Reader = bytes.NewReader(data)
		switch how % 4 {
		case 1:
			r = iotest.OneByteReader(r)
		case 2:
			r = iotest.HalfReader(r)
		case 3:
			r = iotest.DataErrReader(r)
		}
		body, err := (&incoming{Reader: r, length: int64(length)}).read(t.Context())
		switch {
		case length > len(data):
			if !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Fatalf("%d of %d bytes: %v", len(data), length, err)
			}
		case err != nil:
			t.Fatal(err)
		default:
			want := data
			if length >= 0 {
				want = data[:length]
			}
			if !bytes.Equal(*body, want) {
				t.Fatalf("read %d bytes, want %d", len(*body), len(want))
			}
			giveBack(body)
		}
	})
}
