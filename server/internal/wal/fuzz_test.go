package wal

import (
	"bytes"
	"errors"
	"hash/crc32"
	"testing"

	"github.com/runnel-stream/runnel/internal/vfs"
)

func memFile(t testing.TB, content []byte) vfs.File {
	t.Helper()
	f, err := vfs.NewMem().Create("f")
	if err == nil && len(content) > 0 {
		_, err = f.WriteAt(content, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// sealed encodes payloads as the log does.
func sealed(generation uint64, at LSN, payloads ...[]byte) []byte {
	var out []byte
	var s sealer
	for _, p := range payloads {
		f := make([]byte, frameSize(len(p)))
		putFrame(f, KindItems, crc32.Checksum(p, castagnoli), p)
		s.seal(f, generation, at+LSN(len(out)), at)
		out = append(out, f...)
	}
	return out
}

// block is a file's first block.
func block(generation uint64, start LSN) []byte {
	return encodeBlock(segment{
		generation: generation, start: start, made: minFileSize, acks: acksSynced,
	})
}

func TestFramesAreBoundToTheirPlaceAndLife(t *testing.T) {
	p := sealed(7, 64, []byte("payload"))
	var s sealer
	info, ok := s.open(p, 7, 64)
	if !ok || info.kind != KindItems || info.length != 7 || info.synced != 64 {
		t.Fatalf("open = %+v, %v", info, ok)
	}
	if _, ok := s.open(p, 8, 64); ok {
		t.Error("a frame of another generation verifies")
	}
	if _, ok := s.open(p, 7, 72); ok {
		t.Error("a frame of another place verifies")
	}
	zeros := make([]byte, frameHeader)
	if _, ok := s.open(zeros, 0, 0); ok {
		t.Error("zeros verify")
	}
}

// FuzzLogFile reads any bytes as a log file: every frame that is found encodes to the bytes it
// was found in, and nothing panics.
func FuzzLogFile(f *testing.F) {
	f.Add([]byte{})
	f.Add(block(7, 64))
	f.Add(encodeBlock(segment{generation: 7, start: 64}))                    // of version 1
	f.Add(encodeBlock(segment{generation: 7, start: 64, made: minFileSize})) // of version 2
	whole := append(block(7, 64), sealed(7, 64, []byte("a"), nil, make([]byte, 100))...)
	f.Add(whole)
	f.Add(append(bytes.Clone(whole), 1, 2, 3))
	torn := bytes.Clone(whole)
	torn[blockSize+30] ^= 1
	f.Add(append(torn, sealed(7, 64+LSN(len(torn)-blockSize), []byte("behind"))...))
	f.Fuzz(func(t *testing.T, content []byte) {
		file := memFile(t, content)
		if s, ok := decodeBlock(content[:min(len(content), blockUsed)], 7); ok {
			again := encodeBlock(s)
			_, used := s.version()
			if !bytes.Equal(content[:used], again[:used]) {
				t.Fatalf("the first block %x does not encode back", content[:used])
			}
		}
		at := LSN(64)
		r := newReader(file, segment{generation: 7, start: at, size: int64(len(content))}, at)
		for {
			off := r.off
			frame, ok, err := r.next()
			if err != nil {
				t.Fatal(err)
			}
			if !ok {
				break
			}
			again := make([]byte, frameSize(len(frame.payload)))
			putFrame(again, frame.kind, frame.sum, frame.payload)
			var s sealer
			s.seal(again, 7, LSN(off-blockSize)+at, frame.synced)
			n := frameHeader + len(frame.payload)
			if !bytes.Equal(again[:n], content[off:off+int64(n)]) {
				t.Fatalf("the frame at %d does not encode back", off)
			}
		}
		proof, err := r.provesMore(r.off+frameAlign, r.lsn())
		if err != nil || proof != 0 && proof <= r.off {
			t.Fatalf("provesMore = %d, %v", proof, err)
		}
	})
}

// FuzzSnapshot reads any bytes as a snapshot: each accepted snapshot encodes to the same bytes.
func FuzzSnapshot(f *testing.F) {
	f.Add([]byte{})
	f.Add(encodeIndex(9, nil))
	parts := []part{{KindRecords, []byte("records")}, {KindItems, nil}}
	f.Add(append(encodeIndex(1<<40, parts), "records"...))
	f.Fuzz(func(t *testing.T, content []byte) {
		file := memFile(t, content)
		at, entries, err := readIndex(file)
		if err != nil {
			if !errors.Is(err, errSnapshot) {
				t.Fatal(err)
			}
			return
		}
		var parts []part
		var data []byte
		for _, e := range entries {
			p, err := readPart(file, e)
			if err != nil {
				return
			}
			parts = append(parts, part{e.kind, p})
			data = append(data, p...)
		}
		if again := append(encodeIndex(at, parts), data...); !bytes.Equal(again, content) {
			t.Fatalf("%x encodes back to %x", content, again)
		}
	})
}

func FuzzFormat(f *testing.F) {
	f.Add("1\n")
	f.Add("2")
	f.Fuzz(func(t *testing.T, text string) {
		if _, err := parseFormat(text); err != nil && !errors.Is(err, ErrFormat) {
			t.Fatal(err)
		}
	})
}
