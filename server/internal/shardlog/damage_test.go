package shardlog

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/runnel-stream/runnel/internal/vfs"
)

// damagedShard is a shard with segments of 32 records of 128 bytes, arrivals from 1001 on, and four
// damaged places: record 40, the length of record 50, the last record of the second segment, and
// the whole third segment.
func damagedShard(t *testing.T, last func(disk *vfs.Mem, name string)) (setup, *clock) {
	t.Helper()
	disk, now := vfs.NewMem(), new(clock)
	c := setup{fs: disk, now: now.now, segmentSize: 32 * 128, skipDamaged: true}
	e := c.mustOpen(t)
	if err := e.do(t.Context(), opCreate, 1); err != nil {
		t.Fatal(err)
	}
	for i := 1; i <= 4*32; i++ {
		now.ms.Store(int64(1000 + i))
		_, err := e.append(t.Context(), 1, Entry{fmt.Sprintf("%04d", i), make([]byte, 96)})
		if err != nil {
			t.Fatal(err)
		}
	}
	e.mustClose(t)
	second := "data/shards/1/" + segmentName(33)
	rot(128*7+100)(t, disk, second) // record 40
	rot(128*17+5)(t, disk, second)  // record 50
	rot(128*31+9)(t, disk, second)  // record 64
	if err := disk.Remove("data/shards/1/" + segmentName(65)); err != nil {
		t.Fatal(err)
	}
	if last != nil {
		last(disk, "data/shards/1/"+segmentName(97))
	}
	return c, now
}

func lostOfDamagedShard(index uint64) bool {
	return index == 40 || index == 50 || index >= 64 && index <= 96
}

// Reads go on behind every damaged place, and count each lost record once.
func TestReadsSkipDamage(t *testing.T) {
	c, now := damagedShard(t, nil)
	e := c.mustOpen(t)
	defer e.mustClose(t)
	sh := e.store.Shard(1)
	for _, step := range []int{1, 7, 1000} {
		for from := uint64(1); from <= 128; from++ {
			var got, want []uint64
			for next := from; next < 129; {
				records, after, err := sh.ReadLent(t.Context(), nil, next, step, 1<<20)
				if err != nil || after <= next {
					t.Fatalf("from %d: %d, %v", next, after, err)
				}
				for _, r := range records {
					if r.PartitionKey != fmt.Sprintf("%04d", r.Index) {
						t.Fatalf("record %d has the key %s", r.Index, r.PartitionKey)
					}
					got = append(got, r.Index)
				}
				next = after
			}
			for index := from; index <= 128; index++ {
				if !lostOfDamagedShard(index) {
					want = append(want, index)
				}
			}
			if !slices.Equal(got, want) {
				t.Fatalf("from %d by %d: %d", from, step, got)
			}
		}
	}
	if n := e.store.Damaged(); n != 2+1+32 {
		t.Errorf("%d records count as damaged", n)
	}
	if at, err := sh.IndexAt(t.Context(), 1055); at != 55 || err != nil {
		t.Errorf("a time behind the damage, in the same file: %d, %v", at, err)
	}
	now.ms.Store(2000)
	if err := e.store.Trim(t.Context(), 1, 1100); err != nil {
		t.Error(err)
	}
	if oldest, _ := sh.Bounds(); oldest != 100 {
		t.Errorf("trimmed: oldest %d", oldest)
	}
}

// The last records are damaged: a read returns none of them, but where to go on.
func TestReadsSkipADamagedEnd(t *testing.T) {
	c, _ := damagedShard(t, func(disk *vfs.Mem, name string) { resize(t, disk, name, 128*10+5) })
	e := c.mustOpen(t)
	defer e.mustClose(t)
	sh := e.store.Shard(1)
	got, next, err := sh.ReadLent(t.Context(), nil, 107, 10, 1<<20)
	if len(got) != 0 || next != 129 || err != nil {
		t.Errorf("%d records, %d, %v", len(got), next, err)
	}
	if _, err := e.append(t.Context(), 1, Entry{"0129", nil}); err != nil {
		t.Fatal(err)
	}
	e.drained(t)
	got, next, err = sh.ReadLent(t.Context(), nil, 107, 10, 1<<20)
	if len(got) != 1 || next != 130 || err != nil {
		t.Errorf("%d records, %d, %v", len(got), next, err)
	}
}

// Without SkipDamaged the damage is an error, and reading fails where the disk fails.
func TestReadsDoNotSkipErrors(t *testing.T) {
	c, _ := damagedShard(t, nil)
	c.skipDamaged = false
	e := c.mustOpen(t)
	if _, err := e.store.Shard(1).Read(t.Context(), 40, 1, 1); !errors.Is(err, ErrCorrupt) {
		t.Errorf("damage: %v", err)
	}
	if n := e.store.Damaged(); n != 0 {
		t.Errorf("%d records count as skipped", n)
	}
	e.mustClose(t)
	c.skipDamaged = true
	disk := c.fs
	reads := 0
	c.fs = vfs.Inject(disk, func(op vfs.Op) error {
		if op.Kind == vfs.OpRead && op.Name == "data/shards/1/"+segmentName(33) {
			if reads++; reads == 2 { // the search behind the damage
				return vfs.ErrInjected
			}
		}
		return nil
	})
	e = c.mustOpen(t)
	defer e.mustClose(t)
	if _, err := e.store.Shard(1).Read(t.Context(), 40, 1, 1); !errors.Is(err, vfs.ErrInjected) {
		t.Errorf("a failing disk: %v", err)
	}
	if n := e.store.Damaged(); n != 0 {
		t.Errorf("%d records count as skipped after a failed read", n)
	}
}

// A segment's file may be that of another data directory: the same shard, the same indexes, sound
// checksums. Wherever a read begins, it gets no record of that file, and a check finds them lost.
func TestASegmentOfAnotherDirectory(t *testing.T) {
	filled := func(key string, at func(i int64) int64) *vfs.Mem {
		disk, now := vfs.NewMem(), new(clock)
		e := setup{fs: disk, now: now.now, segmentSize: 32 * 128}.mustOpen(t)
		err := e.do(t.Context(), opCreate, 1)
		for i := range int64(3 * 32) {
			now.ms.Store(at(i))
			if err == nil {
				_, err = e.append(t.Context(), 1, Entry{key, make([]byte, 96)})
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		e.mustClose(t)
		return disk
	}
	own := func(i int64) int64 { return 1000 + i }
	name := "data/shards/1/" + segmentName(33)
	for _, begin := range []int64{900, 999, 1001, 1003, 5000} { // the times of most records overlap
		for from := uint64(33); from < 65; from += 3 {
			disk := filled("own ", own)
			other := filled("else", func(i int64) int64 { return begin + i })
			copySegment(t, other, disk, name)
			for _, skip := range []bool{false, true} {
				e := setup{fs: disk, skipDamaged: skip, segmentSize: 32 * 128}.mustOpen(t)
				records, next, err := e.store.Shard(1).ReadLent(t.Context(), nil, from, 9, 1<<20)
				switch {
				case !skip && !errors.Is(err, ErrCorrupt):
					t.Errorf("begin %d: a read from %d: %d records, %v", begin, from, len(records), err)
				case skip && (err != nil || len(records) == 0 && next != 65 || e.store.Damaged() != 32):
					t.Errorf("begin %d: reads from %d: up to %d, %d damaged, %v", begin, from, next,
						e.store.Damaged(), err)
				}
				for _, r := range records {
					if r.PartitionKey != "own " {
						t.Fatalf("begin %d: a read from %d gets record %d of %q", begin, from,
							r.Index, r.PartitionKey)
					}
				}
				e.mustClose(t)
			}
			found := inspect(t, disk).found.Damage
			if len(found) != 1 || found[0].From != 33 || found[0].To != 65 {
				t.Errorf("begin %d: a check finds %+v", begin, found)
			}
		}
	}
	// Here the segment's first record is of the same millisecond in both directories.
	for from, at := range map[uint64]func(i int64) int64{
		49: func(i int64) int64 { return 968 + 2*i }, 64: func(i int64) int64 { return 1016 + i/2 },
	} {
		disk := filled("own ", own)
		copySegment(t, filled("else", at), disk, name)
		found := inspect(t, disk).found.Damage
		if len(found) != 1 || found[0].From != from || found[0].To != 65 {
			t.Errorf("a check finds %+v, and not the records from %d on", found, from)
		}
	}
}

func copySegment(t *testing.T, from, to *vfs.Mem, name string) {
	t.Helper()
	content := make([]byte, 32*128)
	in, err := from.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	_, err = in.ReadAt(content, 0)
	out, openErr := to.Open(name)
	if err = errors.Join(err, openErr); err == nil {
		_, err = out.WriteAt(content, 0)
		err = errors.Join(err, in.Close(), out.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}
