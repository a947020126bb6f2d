package wal

import (
	"bytes"
	"hash/crc32"
	"math/rand/v2"
	"testing"
)

// A single changed byte is found, wherever it is; two are not.
func TestMendByte(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 1))
	mended := 0
	for _, size := range []int{1, 2, 17, 300, maxMend} {
		want := make([]byte, size)
		for i := range want {
			want[i] = byte(rng.Uint32())
		}
		sum := crc32.Checksum(want, castagnoli)
		for range 100 {
			p := bytes.Clone(want)
			p[rng.IntN(size)] ^= byte(1 + rng.IntN(255))
			if !mendByte(p, sum) || !bytes.Equal(p, want) {
				t.Fatalf("%d bytes: not mended", size)
			}
			if size < 2 {
				continue
			}
			i := rng.IntN(size - 1)
			p[i] ^= byte(1 + rng.IntN(255))
			p[i+1+rng.IntN(size-1-i)] ^= byte(1 + rng.IntN(255))
			if mendByte(p, sum) {
				mended++
			}
		}
		if mendByte(bytes.Clone(want), sum) {
			t.Errorf("%d bytes: whole, and yet mended", size)
		}
	}
	if mended > 3 {
		t.Errorf("two changed bytes were taken for one %d times", mended)
	}
	if mendByte(make([]byte, maxMend+1), 1) {
		t.Error("a long payload was mended")
	}
}

// A frame is mended if one byte of its header is damaged, and not if its payload is damaged too.
func TestMendHeader(t *testing.T) {
	const generation, at, synced = 9, 4000, 3200
	var s sealer
	body := []byte("a payload of some bytes")
	whole := make([]byte, frameSize(len(body)))
	putFrame(whole, KindItems, crc32.Checksum(body, castagnoli), body)
	s.seal(whole, generation, at, synced)
	for off := range frameHeader {
		for e := 1; e < 256; e += 7 {
			p := bytes.Clone(whole)
			p[off] ^= byte(e)
			f, ok := s.mend(p, generation, at)
			if !ok || f.kind != KindItems || f.synced != synced || !bytes.Equal(f.payload, body) ||
				f.end != at+LSN(len(whole)) {
				t.Fatalf("byte %d: %+v, %v", off, f, ok)
			}
			p[frameHeader] ^= 1
			if f, ok := s.mend(p, generation, at); ok {
				t.Fatalf("byte %d and the payload: %+v", off, f)
			}
		}
		p := bytes.Clone(whole)
		p[off] ^= 1
		if _, ok := s.mend(p, generation+1, at); ok {
			t.Fatalf("byte %d: a frame of another generation is mended", off)
		}
	}
	if _, ok := s.mend(whole[:len(whole)-8], generation, at); ok {
		t.Error("a frame that is cut off is mended")
	}
}
