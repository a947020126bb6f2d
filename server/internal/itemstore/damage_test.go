package itemstore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"testing"

	"github.com/runnel-stream/runnel/server/internal/wal"
)

// TestOneRottenByte: a start finds every byte of every file, mends it, and replaces the file.
func TestOneRottenByte(t *testing.T) {
	disk, want := chained(t)
	for name, size := range dataFiles(t, disk) {
		for at := int64(0); at < size; at += 97 {
			hurt := copyDisk(t, disk)
			mutate(t, hurt, path.Join("data", FolderName, name), func(p []byte) []byte {
				p[at] ^= 4
				return p
			})
			b := open(t, hurt)
			b.has(t, want, "%s, byte %d", name, at)
			for range 4 { // a sweep, and then both snapshots do without the file
				b.put(t, b.table(t, "t"), sized("0", 300, 9))
				b.checkpoint(t)
			}
			b.close(t)
			if _, there := dataFiles(t, hurt)[name]; there {
				t.Fatalf("%s, byte %d: the damaged file is still there", name, at)
			}
		}
	}
}

// TestADamagedFileGoesOverRestarts: the sweep that replaces a damaged file goes on at the next
// start, which finds the damage again. Each life makes one snapshot.
func TestADamagedFileGoesOverRestarts(t *testing.T) {
	disk, want := chained(t)
	for name := range dataFiles(t, disk) {
		hurt := copyDisk(t, disk)
		mutate(t, hurt, path.Join("data", FolderName, name), func(p []byte) []byte {
			p[0] ^= 4
			return p
		})
		for life := range 6 {
			b := open(t, hurt)
			b.has(t, want, "%s, life %d", name, life)
			b.put(t, b.table(t, "t"), sized("0", 300, int(want["0"])))
			b.checkpoint(t)
			b.close(t)
		}
		if files := dataFiles(t, hurt); files[name] > 0 {
			t.Errorf("the damaged file %s is still there: %v", name, files)
		}
	}
}

// TestADamagedFileOfASweep: a file that the running sweep has written itself needs another sweep.
func TestADamagedFileOfASweep(t *testing.T) {
	disk, want := chained(t)
	b := open(t, disk)
	step := func() {
		b.put(t, b.table(t, "t"), sized("0", 300, int(want["0"])))
		b.checkpoint(t)
	}
	b.chain.sweep, b.chain.forced = sweep{}, true
	step()
	if b.chain.sweep.phase == sweepNone {
		t.Fatal("no sweep runs")
	}
	b.close(t)
	name := slices.Max(slices.Collect(maps.Keys(dataFiles(t, disk))))
	mutate(t, disk, path.Join("data", FolderName, name), func(p []byte) []byte {
		p[0] ^= 4
		return p
	})
	b = open(t, disk)
	for range 9 {
		step()
	}
	b.has(t, want, "after a sweep")
	b.close(t)
	if _, there := dataFiles(t, disk)[name]; there {
		t.Errorf("%s is still there", name)
	}
}

// TestALostFile: without the newest file a start uses the snapshot before it, and the log. Without
// an older one it stops.
func TestALostFile(t *testing.T) {
	disk, b, table := withTable(t)
	b.age(t, table)
	older := map[uint64]bool{}
	for round := range 3 {
		older = b.chain.named
		for i := range 20 {
			b.put(t, table, sized(fmt.Sprint(i+10*round), 300, round))
		}
		b.checkpoint(t)
	}
	want := b.versions(t, table)
	names := slices.Sorted(maps.Keys(dataFiles(t, disk)))
	for _, name := range names {
		hurt := copyDisk(t, disk)
		if err := hurt.Remove(path.Join("data", FolderName, name)); err != nil {
			t.Fatal(err)
		}
		after, err := tryOpen(t.Context(), hurt)
		number, _ := fileID(name)
		if b.chain.named[number] && older[number] {
			var corrupt *wal.CorruptError
			if !errors.As(err, &corrupt) || path.Base(corrupt.File) != name {
				t.Errorf("without %s: %v", name, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		after.has(t, want, "without %s", name)
		after.close(t)
	}
	b.close(t)
}

// TestADamagedSnapshot: at every time, a start does without the newest snapshot, and still finds the
// files of the one before.
func TestADamagedSnapshot(t *testing.T) {
	disk, b, table := withTable(t)
	b.age(t, table)
	for round := range 60 {
		for i := range 10 {
			b.put(t, table, sized(fmt.Sprint((i*7+round)%25), 300, round))
		}
		b.checkpoint(t)
		want := b.versions(t, table)
		hurt := copyDisk(t, disk)
		newest, err := wal.NewestSnapshot(hurt, "data")
		if err != nil {
			t.Fatal(err)
		}
		mutate(t, hurt, path.Join("data", newest), func(p []byte) []byte {
			p[len(p)/2] ^= 1
			return p
		})
		after, err := tryOpen(t.Context(), hurt)
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		after.has(t, want, "round %d", round)
		after.close(t)
	}
	b.close(t)
}

// TestRepairWithoutABlock: what is whole stays, and the losses are listed.
func TestRepairWithoutABlock(t *testing.T) {
	disk, want := chained(t)
	names := slices.Sorted(maps.Keys(dataFiles(t, disk)))
	for _, name := range names {
		mutate(t, disk, path.Join("data", FolderName, name), func(p []byte) []byte {
			p[10] ^= 1
			p[900] ^= 1 // another stripe of the same block
			return p
		})
	}
	log, err := wal.Open(wal.Config{
		FS: disk, Dir: "data", FileSize: 64 << 10, Logger: quiet, Salvage: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	s := New(Config{Log: log, Salvage: true})
	found, err := log.Inspect(t.Context())
	if err != nil || len(found.Damage) != len(names) || len(s.Lost()) != len(names) {
		t.Fatalf("%+v, %v, %v", found, s.Lost(), err)
	}
	if err := log.Rebase(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	if err := log.Close(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
	b := open(t, disk)
	left := b.versions(t, b.table(t, "t"))
	if len(left) == 0 || len(left) >= len(want) {
		t.Errorf("%d items of %d", len(left), len(want))
	}
	for key, version := range left {
		if version > want[key] {
			t.Errorf("item %s has version %d, want %d", key, version, want[key])
		}
	}
	b.close(t)
}
