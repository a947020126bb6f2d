package kinesis

import (
	"bytes"
	"encoding/base64"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/runnel-stream/runnel/internal/shardid"
	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/server/internal/catalogue"
)

func testSealer(t testing.TB, fill byte) *sealer {
	t.Helper()
	s, err := newSealer(bytes.Repeat([]byte{fill}, catalogue.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestIteratorRoundTrip(t *testing.T) {
	s := testSealer(t, 1)
	rapid.Check(t, func(t *rapid.T) {
		it := iterator{
			issued:  rapid.Int64().Draw(t, "issued"),
			created: rapid.Int64().Draw(t, "created"),
			shard:   rapid.Uint32Range(0, shardid.Max).Draw(t, "shard"),
			place:   rapid.Uint64().Draw(t, "next"),
			stream:  rapid.StringMatching(`[a-zA-Z0-9_.-]{1,128}`).Draw(t, "stream"),
		}
		back, err := s.openIterator(here, s.sealIterator(here, it))
		if err != nil || back != it {
			t.Fatalf("%+v was read as %+v, %v", it, back, err)
		}
	})
}

// An iterator has AWS's mark and length, whatever it holds.
func TestIteratorLength(t *testing.T) {
	s := testSealer(t, 1)
	for name, want := range map[int]int{1: 152, 13: 152, 14: 168, 29: 168, 30: 184, 128: 280} {
		stream := strings.Repeat("n", name)
		for _, it := range []iterator{{stream: stream}, {
			issued: math.MinInt64, created: math.MinInt64, shard: shardid.Max,
			place: math.MaxUint64, stream: stream,
		}} {
			token := s.sealIterator(here, it)
			got, err := base64.StdEncoding.DecodeString(token)
			if err != nil || len(got) != want || !bytes.HasPrefix(got, []byte(iteratorMark)) {
				t.Errorf("%d characters: %d bytes that begin with %x, %v; want %d",
					name, len(got), got[:8], err, want)
			}
			if len(token) > 512 {
				t.Errorf("%d characters: the iterator has %d", name, len(token))
			}
		}
	}
}

// A token is valid only in its world, for its kind, under its key, and unchanged.
func TestSealRefuses(t *testing.T) {
	s := testSealer(t, 1)
	token := s.seal(sealIterator, here, []byte("text"))
	if text, ok := s.open(sealIterator, here, token); !ok || string(text) != "text" {
		t.Fatalf("a good token was read as %q, %v", text, ok)
	}
	other := wire.World{Account: here.Account, Region: "eu-west-1"}
	changed := []byte(token)
	changed[20] ^= 1
	marked := []byte(token)
	marked[2] ^= 1
	for name, ok := range map[string]func() bool{
		"another key":   func() bool { _, ok := testSealer(t, 2).open(sealIterator, here, token); return ok },
		"another kind":  func() bool { _, ok := s.open(sealShardsPage, here, token); return ok },
		"another world": func() bool { _, ok := s.open(sealIterator, other, token); return ok },
		"changed":       func() bool { _, ok := s.open(sealIterator, here, string(changed)); return ok },
		"marked anew":   func() bool { _, ok := s.open(sealIterator, here, string(marked)); return ok },
		"cut":           func() bool { _, ok := s.open(sealIterator, here, token[:len(token)-4]); return ok },
		"empty":         func() bool { _, ok := s.open(sealIterator, here, ""); return ok },
		"no base64":     func() bool { _, ok := s.open(sealIterator, here, "%%%"); return ok },
	} {
		if ok() {
			t.Errorf("a token is taken although it is %s", name)
		}
	}
	if _, err := newSealer([]byte("short")); err == nil {
		t.Error("a short key is taken")
	}
}

func FuzzParseIterator(f *testing.F) {
	f.Add([]byte{})
	f.Add(iterator{issued: 1, created: 2, shard: 3, place: 4, stream: "orders"}.appendBinary(nil))
	f.Add(append(iterator{stream: "padded"}.appendBinary(nil), 0, 0, 0))
	f.Fuzz(func(t *testing.T, data []byte) {
		it, ok := parseIterator(data)
		if !ok {
			return
		}
		if back, ok := parseIterator(it.appendBinary(nil)); !ok || back != it {
			t.Fatalf("%+v is written as %+v", it, back)
		}
	})
}

func FuzzOpenIterator(f *testing.F) {
	s := testSealer(f, 1)
	f.Add("")
	f.Add(`""`)
	f.Add(s.sealIterator(here, iterator{stream: "orders"}))
	f.Fuzz(func(t *testing.T, token string) {
		if _, err := s.openIterator(here, token); err != nil {
			wantError(t, err, codeInvalid, "Invalid ShardIterator.")
		}
	})
}
