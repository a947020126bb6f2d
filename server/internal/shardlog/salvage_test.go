package shardlog

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"
)

// filledFrames returns the frames of count records from index on, and where each begins.
func filledFrames(index uint64, count int, data func(i int) []byte) (buf []byte, at []int) {
	for i := range count {
		at = append(at, len(buf))
		number := Number{Index: index + uint64(i), Arrival: int64(1000 + i)}
		buf = appendFrame(buf, frameSeed(7), number, Entry{"key", data(i)})
	}
	return buf, at
}

// indexes returns the records of runs, which must verify where they are.
func indexes(t *testing.T, buf []byte, runs []run) (found []uint64) {
	t.Helper()
	last := 0
	for _, r := range runs {
		off := r.offset
		if off < last {
			t.Fatalf("runs overlap: %+v", runs)
		}
		for index := r.first; index < r.end; index++ {
			f, err := parseFrame(buf[off:], frameSeed(7), index)
			if err != nil {
				t.Fatalf("record %d of %+v: %v", index, r, err)
			}
			found = append(found, index)
			off += f.size
		}
		if last = off; off != r.offset+r.size {
			t.Fatalf("%+v has other bytes", r)
		}
	}
	return found
}

// One damaged byte costs one record, whichever it is.
func TestSalvageLosesOneRecordPerByte(t *testing.T) {
	buf, at := filledFrames(5, 12, func(i int) []byte { return make([]byte, i*5) })
	for off := range buf {
		hurt := slices.Clone(buf)
		hurt[off] ^= 0x40
		victim := 0
		for victim+1 < len(at) && at[victim+1] <= off {
			victim++
		}
		var want []uint64
		for i := range at {
			if i != victim {
				want = append(want, uint64(5+i))
			}
		}
		got := indexes(t, hurt, salvage{hurt, frameSeed(7), 17}.runs(5))
		if !slices.Equal(got, want) {
			t.Fatalf("byte %d: %d, not %d", off, got, want)
		}
	}
}

// Something that looks like frames inside the data of a record is not taken for records, even if
// that record's length is damaged.
func TestSalvageIsNotFooledByData(t *testing.T) {
	for name, inner := range map[string]func(dst []byte) []byte{
		"the next record": func(dst []byte) []byte {
			return appendFrame(dst, frameSeed(7), Number{Index: 3}, Entry{"k", []byte("false")})
		},
		"a chain": func(dst []byte) []byte {
			for i := range uint64(5) {
				number := Number{Index: 3 + i}
				dst = appendFrame(dst, frameSeed(7), number, Entry{"k", []byte("false")})
			}
			return dst
		},
		"the last record": func(dst []byte) []byte {
			dst = append(dst, make([]byte, 500)...)
			return appendFrame(dst, frameSeed(7), Number{Index: 9}, Entry{"k", []byte("false")})
		},
	} {
		for _, padding := range []int{0, 1, 40} {
			buf, at := filledFrames(1, 8, func(i int) []byte {
				if i == 1 {
					return append(inner(nil), make([]byte, padding)...)
				}
				return []byte("true")
			})
			buf[at[1]+6] ^= 1 // the length of record 2
			got := salvage{buf, frameSeed(7), 9}.runs(1)
			if !slices.Equal(indexes(t, buf, got), []uint64{1, 3, 4, 5, 6, 7, 8}) ||
				got[1].offset != at[2] {
				t.Errorf("%s, %d bytes behind it: %+v, frames at %d", name, padding, got, at)
			}
		}
	}
}

// Several damaged places, a cut end, and bytes that are gone.
func TestSalvageOfManyPlaces(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		buf, at := filledFrames(1, 30, func(i int) []byte { return make([]byte, i%7*20) })
		ends := append(at[1:], len(buf))
		hurt := slices.Clone(buf)
		for range 1 + rng.IntN(6) {
			hurt[rng.IntN(len(hurt))] ^= byte(1 + rng.IntN(255))
		}
		hurt = hurt[:len(hurt)-rng.IntN(100)]
		var want []uint64
		for i := range at {
			if ends[i] <= len(hurt) && slices.Equal(hurt[at[i]:ends[i]], buf[at[i]:ends[i]]) {
				want = append(want, uint64(i+1))
			}
		}
		got := indexes(t, hurt, salvage{hurt, frameSeed(7), 31}.runs(1))
		if !slices.Equal(got, want) {
			t.Fatalf("%d, not %d", got, want)
		}
	}
}

// A record that is full of headers costs bounded work.
func TestSalvageGivesUp(t *testing.T) {
	header := make([]byte, 16)
	header[2] = 0x10 // the length, 1 MiB: its four bytes lie before the index
	header[4] = 3
	buf, at := filledFrames(1, 4, func(i int) []byte {
		if i == 1 {
			return bytes.Repeat(header, 4<<20/len(header))
		}
		return []byte("true")
	})
	buf[at[1]+6] ^= 1 // the length of record 2
	got := indexes(t, buf, salvage{buf, frameSeed(7), 5}.runs(1))
	if !slices.Equal(got, []uint64{1}) {
		t.Errorf("%d after more work than allowed", got)
	}
}

func FuzzSalvage(f *testing.F) {
	buf, _ := filledFrames(1, 4, func(i int) []byte { return make([]byte, i*10) })
	f.Add(buf, uint64(1), uint64(5))
	f.Add(buf[10:], uint64(1), uint64(anyIndex))
	f.Add(slices.Concat(buf[:40], buf), uint64(1), uint64(9))
	f.Fuzz(func(t *testing.T, data []byte, first, end uint64) {
		if first == 0 || first > end || len(data) > 1<<14 {
			return
		}
		found := indexes(t, data, salvage{data, frameSeed(7), end}.runs(first))
		outside := func(index uint64) bool { return index < first || index >= end }
		if !slices.IsSorted(found) || slices.ContainsFunc(found, outside) {
			t.Errorf("records %d of [%d, %d)", found, first, end)
		}
	})
}
