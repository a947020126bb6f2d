package shardlog

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"github.com/runnel-stream/runnel/internal/vfs"
	"github.com/runnel-stream/runnel/server/internal/wal"
)

// inspected is the result of an inspection of a directory.
type inspected struct {
	log    *wal.Inspection
	shards map[ID]*Inspected
	found  Found
}

func inspect(t testing.TB, disk vfs.FS) inspected {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	log, err := wal.Open(wal.Config{FS: disk, Dir: "data", ReadOnly: true})
	if errors.Is(err, wal.ErrNoLog) || errors.Is(err, fs.ErrNotExist) {
		return inspected{log: &wal.Inspection{}} // power was lost before there was one
	}
	if err != nil {
		t.Fatal(err)
	}
	in := NewInspector(log, disk, "data")
	log.Register(wal.KindCatalogue, &catalogue{store: in.Store()})
	got := inspected{shards: map[ID]*Inspected{}}
	if got.log, err = log.Inspect(ctx); err == nil {
		got.found, err = in.Files(ctx)
	}
	if err = errors.Join(err, log.Close(ctx)); err != nil {
		t.Fatal(err)
	}
	for _, sh := range in.Shards() {
		got.shards[sh.ID] = sh
	}
	return got
}

// compare returns the differences between a start and the inspection before it.
func (in inspected) compare(s *Store) error {
	if len(in.log.Damage) > 0 || len(in.found.Damage) > 0 {
		return fmt.Errorf("damage: %v, %+v", in.log.Damage, in.found.Damage)
	}
	if shards := s.all(); len(shards) != len(in.shards) {
		return fmt.Errorf("%d shards, the inspection says %d", len(shards), len(in.shards))
	}
	for _, sh := range s.all() {
		was := in.shards[sh.id]
		if was == nil {
			return fmt.Errorf("shard %d was not found", sh.id)
		}
		oldest, next := sh.Bounds()
		if was.Oldest != oldest || was.Next != next || was.Sealed != sh.Sealed() ||
			was.Arrival != sh.LastArrival() {
			return fmt.Errorf("shard %d has [%d, %d), the inspection says %+v",
				sh.id, oldest, next, was)
		}
	}
	return nil
}

// An inspection lists the lost records of damaged segments, for any number of segments, and none
// of trimmed ones.
func TestInspectSegments(t *testing.T) {
	disk, now := vfs.NewMem(), new(clock)
	c := setup{fs: disk, now: now.now, segmentSize: 32 * 128}
	e := c.mustOpen(t)
	ctx := t.Context()
	err := e.do(ctx, opCreate, 1)
	for i := 1; i <= 5*32 && err == nil; i++ { // segments of 32 records
		now.ms.Store(int64(1000 + i))
		_, err = e.append(ctx, 1, Entry{fmt.Sprintf("%04d", i), make([]byte, 96)})
	}
	if err == nil {
		err = e.store.Trim(ctx, 1, 1000+40)
	}
	if err != nil {
		t.Fatal(err)
	}
	e.mustClose(t)
	in := inspect(t, disk)
	sh := in.shards[1]
	if sh.Oldest != 40 || sh.Next != 161 || sh.Segments != 4 || sh.Bytes != 4*32*128 ||
		len(in.found.Damage) != 0 || in.found.Bytes != 4*32*128 {
		t.Fatalf("%+v, %+v", sh, in.found)
	}
	file := func(first uint64) string { return "data/shards/1/" + segmentName(first) }
	rot(50*128%(32*128)+9)(t, disk, file(65)) // record 83
	resize(t, disk, file(97), 10*128-1)
	resize(t, disk, file(129), 33*128)
	rot(2*128)(t, disk, file(33)) // record 35, trimmed; but those behind it are read past it
	for name, content := range map[string]string{
		"data/shards/1/notes": "x", file(900): "x", "data/shards/9/" + segmentName(1): "xy",
	} {
		if err := disk.MkdirAll("data/shards/9"); err != nil {
			t.Fatal(err)
		}
		f, err := disk.Create(name)
		if err == nil {
			_, err = f.WriteAt([]byte(content), 0)
		}
		if err = errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
	}
	got := inspect(t, disk).found
	want := []Damage{
		{1, file(33), 2 * 128, 40, 65, "the checksum does not match"},
		{1, file(65), 18 * 128, 83, 97, "the checksum does not match"},
		{1, file(97), 9 * 128, 106, 129, "the file ends at offset 1279, not 4096"},
	}
	if fmt.Sprint(got.Damage) != fmt.Sprint(want) {
		t.Errorf("damage %+v\n want %+v", got.Damage, want)
	}
	if fmt.Sprint(got.Leftover) != fmt.Sprint([]string{"data/shards/9", file(900)}) ||
		fmt.Sprint(got.Foreign) != "[data/shards/1/notes]" ||
		got.Bytes != 3*32*128+10*128-1+128+4 {
		t.Errorf("%q, %q, %d bytes", got.Leftover, got.Foreign, got.Bytes)
	}
}
