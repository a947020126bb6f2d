package shardlog

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path"
	"sort"
	"testing"

	"pgregory.net/rapid"

	"github.com/runnel-stream/runnel/internal/vfs"
)

// bareStore has only the fields that reading a segment needs.
func bareStore(t testing.TB, places int) *Store {
	t.Helper()
	s := &Store{cfg: Config{FS: vfs.NewMem()}, root: "shards"}
	s.files = newFiles(s.cfg.FS, 8)
	s.sparse = newSparseCache(places)
	t.Cleanup(s.files.close)
	return s
}

// writeSegment makes a segment with one record per entry.
func writeSegment(t testing.TB, s *Store, raw []byte, first uint64, arrivals []int64) extent {
	t.Helper()
	sh := newShard(s, 7)
	seg := &segment{shard: sh, first: first}
	if err := s.cfg.FS.MkdirAll(sh.folder); err != nil {
		t.Fatal(err)
	}
	file, err := s.files.create(seg)
	if err != nil {
		t.Fatal(err)
	}
	defer s.files.release(file)
	if _, err := file.WriteAt(raw, 0); err != nil {
		t.Fatal(err)
	}
	return extent{
		segment: seg, end: first + uint64(len(arrivals)), size: int64(len(raw)),
		firstArrival: arrivals[0], lastArrival: arrivals[len(arrivals)-1],
	}
}

// A search with the sparse index finds the same as a search through all records, after any
// sequence of searches, reads, writes and evictions.
func TestLocate(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := bareStore(t, rapid.SampledFrom([]int{40, 1 << 20}).Draw(rt, "places"))
		size := rapid.SampledFrom([]int{10, 3_000, 100_000}).Draw(rt, "size")
		count := rapid.IntRange(1, min(400, 4_000_000/size)).Draw(rt, "count")
		first := uint64(rapid.IntRange(1, 1000).Draw(rt, "first"))
		var raw []byte
		var arrivals, offsets []int64
		arrival := int64(1000)
		for i := range count {
			arrival += int64(rapid.IntRange(0, 2).Draw(rt, "later"))
			number := Number{Index: first + uint64(i), Arrival: arrival}
			arrivals, offsets = append(arrivals, arrival), append(offsets, int64(len(raw)))
			data := bytes.Repeat([]byte{byte(i)}, rapid.IntRange(0, size).Draw(rt, "bytes"))
			raw = appendFrame(raw, frameSeed(7), number, Entry{fmt.Sprint(i), data})
		}
		e := writeSegment(t, s, raw, first, arrivals)
		if known := rapid.IntRange(0, count).Draw(rt, "known"); known > 0 {
			indexWritten(s, e, raw, offsets, known)
		}
		for range 30 {
			switch rapid.IntRange(0, 9).Draw(rt, "what") {
			case 0:
				s.sparse.forget(e.segment)
			case 1, 2, 3:
				ms := arrivals[rapid.IntRange(0, count-1).Draw(rt, "of")]
				got, err := s.locateArrival(t.Context(), e, ms)
				n := sort.Search(count, func(i int) bool { return arrivals[i] >= ms })
				if err != nil || got != first+uint64(n) {
					rt.Fatalf("arrival %d: record %d, not %d: %v", ms, got, first+uint64(n), err)
				}
			default:
				i := rapid.IntRange(0, count-1).Draw(rt, "record")
				checkRead(t, rt, s, e, offsets, i)
			}
		}
	})
}

// indexWritten extends the index as the drainer does after it has written the first records.
func indexWritten(s *Store, e extent, raw []byte, offsets []int64, known int) {
	end := e.size
	if known < len(offsets) {
		end = offsets[known]
	}
	b := &batch{first: e.first, count: known, arrival: 0, frames: raw[:end]}
	var found []place
	for _, at := range appendPlaces(nil, b, 0) {
		at.arrival = readFrame(raw[at.offset:]).arrival
		found = append(found, at)
	}
	last := readFrame(raw[offsets[known-1]:])
	s.sparse.extend(e.segment, place{index: e.first}, found,
		place{last.index + 1, end, last.arrival})
}

func checkRead(t *testing.T, rt *rapid.T, s *Store, e extent, offsets []int64, i int) {
	index := e.first + uint64(i)
	file, err := s.files.hold(e.segment)
	if err != nil {
		rt.Fatal(err)
	}
	defer s.files.release(file)
	at, err := s.locate(t.Context(), e, file, index)
	if err != nil || at.index > index || offsets[at.index-e.first] != at.offset {
		rt.Fatalf("record %d: %+v, %v", index, at, err)
	}
	if far := offsets[i] - at.offset; far > 2*sparseStep+100_200 {
		rt.Fatalf("record %d: %d bytes off", index, far)
	}
	got := collector{
		maxRecords: rapid.IntRange(1, 50).Draw(rt, "records"),
		maxBytes:   rapid.IntRange(0, 200_000).Draw(rt, "bytes"),
	}
	if err := s.readSegment(t.Context(), e, index, &got); err != nil {
		rt.Fatal(err)
	}
	for n, r := range got.finish() {
		if r.Index != index+uint64(n) || r.PartitionKey != fmt.Sprint(i+n) {
			rt.Fatalf("record %d is %d, %q", index+uint64(n), r.Index, r.PartitionKey)
		}
	}
	if len(got.records) == 0 {
		rt.Fatal("no record")
	}
}

// For any content of a segment file, reading gives records that were written, or an error.
func FuzzSegment(f *testing.F) {
	var good []byte
	for i := range 5 {
		good = append(good, testFrame(7, uint64(10+i), int64(i), "key", "data")...)
	}
	f.Add(good, uint16(5), int64(len(good)))
	f.Add(good[:100], uint16(5), int64(len(good)))
	f.Add(bytes.Repeat([]byte{255}, 300), uint16(3), int64(300))
	f.Fuzz(func(t *testing.T, raw []byte, count uint16, size int64) {
		size = min(max(size, 0), 1<<20)
		scan := &scanner{
			file: bytes.NewReader(raw), name: "f", seed: frameSeed(7), want: 64,
			next: 10, end: 10 + uint64(count), limit: size,
		}
		read := 0
		for {
			before := *scan
			got, err := scan.scan()
			if errors.Is(err, io.EOF) {
				if read != int(count) || scan.off != size {
					t.Fatalf("the end after %d of %d records", read, count)
				}
				return
			}
			if err != nil {
				var corrupt *CorruptError
				if !errors.As(err, &corrupt) || corrupt.Offset != before.off ||
					corrupt.Index != before.next {
					t.Fatalf("%v", err)
				}
				return
			}
			again := testFrame(7, got.index, got.arrival, string(got.key), string(got.data))
			if !bytes.Equal(again, raw[before.off:scan.off]) {
				t.Fatalf("%+v at %d", got, before.off)
			}
			read++
		}
	})
}

func TestSegmentName(t *testing.T) {
	for _, first := range []uint64{0, 1, 1<<64 - 1} {
		if got, ok := parseSegmentName(segmentName(first)); got != first || !ok {
			t.Errorf("%d became %d, %v", first, got, ok)
		}
	}
	for _, name := range []string{
		"", "1.seg", "00000000000000000001.log", "notes.txt",
		"99999999999999999999.seg", "-0000000000000000001.seg", "000000000000000000001.seg",
	} {
		if first, ok := parseSegmentName(name); ok {
			t.Errorf("%q was taken for %d", name, first)
		}
	}
	seg := segment{shard: newShard(&Store{root: "d/shards"}, 12), first: 34}
	if want := path.Join("d/shards/12", "00000000000000000034.seg"); seg.path() != want {
		t.Errorf("%q, not %q", seg.path(), want)
	}
}
