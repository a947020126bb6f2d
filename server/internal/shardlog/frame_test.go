package shardlog

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"testing"
)

func testFrame(id ID, index uint64, arrival int64, key, data string) []byte {
	return appendFrame(nil, frameSeed(id), Number{Index: index, Arrival: arrival}, Entry{key, []byte(data)})
}

func TestFrame(t *testing.T) {
	raw := testFrame(7, 42, 1_700_000_000_123, "käse", "data")
	f, err := parseFrame(append(raw, "what follows"...), frameSeed(7), 42)
	if err != nil {
		t.Fatal(err)
	}
	if f.index != 42 || f.arrival != 1_700_000_000_123 || string(f.key) != "käse" ||
		string(f.data) != "data" || f.size != len(raw) {
		t.Errorf("got %+v", f)
	}
	if cap(f.key) != len(f.key) || cap(f.data) != len(f.data) {
		t.Error("appending to a record's bytes would overwrite its neighbour")
	}
	if got := frameSize(Entry{"käse", []byte("data")}); got != len(raw) {
		t.Errorf("frameSize is %d, not %d", got, len(raw))
	}
}

// Every single-bit error is found, and so is a good frame in a wrong place.
func TestFrameDamage(t *testing.T) {
	raw := testFrame(7, 42, 5, "key", "data")
	for bit := range len(raw) * 8 {
		bad := bytes.Clone(raw)
		bad[bit/8] ^= 1 << (bit % 8)
		if f, err := parseFrame(bad, frameSeed(7), 42); err == nil {
			t.Fatalf("bit %d is wrong, and it was read as %+v", bit, f)
		}
	}
	for n := range raw {
		if _, err := parseFrame(raw[:n], frameSeed(7), 42); !errors.Is(err, errShort) {
			t.Fatalf("the first %d bytes: %v", n, err)
		}
	}
	if _, err := parseFrame(raw, frameSeed(8), 42); err == nil {
		t.Error("another shard's frame was taken")
	}
	if _, err := parseFrame(raw, frameSeed(7), 43); err == nil {
		t.Error("another record's frame was taken")
	}
	if _, err := parseFrame(make([]byte, 100), frameSeed(7), 42); err == nil {
		t.Error("zeros were taken for a frame")
	}
	binary.LittleEndian.PutUint32(raw[24:], 1000) // a key longer than the frame, well summed
	binary.LittleEndian.PutUint32(raw, crc32.Update(frameSeed(7), castagnoli, raw[4:]))
	if _, err := parseFrame(raw, frameSeed(7), 42); err == nil {
		t.Error("a key longer than its frame was taken")
	}
}

func FuzzFrame(f *testing.F) {
	f.Add(testFrame(7, 42, 5, "key", "data"), true)
	f.Add(testFrame(7, 42, 5, "", ""), false)
	f.Add([]byte{}, false)
	f.Fuzz(func(t *testing.T, raw []byte, sum bool) {
		if sum && len(raw) >= frameHeader { // so that the fields behind the sum are tried too
			raw = bytes.Clone(raw)
			length, err := frameLength(raw)
			if err == nil && length <= len(raw) {
				crc := crc32.Update(frameSeed(7), castagnoli, raw[4:length])
				binary.LittleEndian.PutUint32(raw, crc)
			}
		}
		got, err := parseFrame(raw, frameSeed(7), 42)
		if err != nil {
			return
		}
		again := testFrame(7, got.index, got.arrival, string(got.key), string(got.data))
		if !bytes.Equal(again, raw[:got.size]) || got.index != 42 {
			t.Errorf("%x was read as %+v", raw, got)
		}
	})
}
