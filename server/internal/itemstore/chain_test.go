package itemstore

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"path"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/runnel-stream/runnel/internal/vfs"
	"github.com/runnel-stream/runnel/server/internal/wal"
)

// sized returns an item of about n bytes. version is part of it.
func sized(key string, n, version int) Item {
	return Item{
		"id": String(key), "v": NumberOf(int64(version)), "pad": String(strings.Repeat("p", n)),
	}
}

// dataFiles returns the names and lengths of the data files.
func dataFiles(t testing.TB, disk vfs.FS) map[string]int64 {
	t.Helper()
	found := map[string]int64{}
	names, err := disk.List("data/" + FolderName)
	if err != nil {
		return found
	}
	for _, name := range names {
		info, err := disk.Stat(path.Join("data", FolderName, name))
		if err != nil {
			t.Fatal(err)
		}
		found[name] = info.Size()
	}
	return found
}

func total(files map[string]int64) (sum int64) {
	for _, size := range files {
		sum += size
	}
	return sum
}

// snapshotBytes returns the length of the newest snapshot.
func snapshotBytes(t testing.TB, disk vfs.FS) int64 {
	t.Helper()
	name, err := wal.NewestSnapshot(disk, "data")
	if err != nil || name == "" {
		t.Fatal(name, err)
	}
	info, err := disk.Stat(path.Join("data", name))
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

func (b bench) checkpoint(t testing.TB) {
	t.Helper()
	if err := b.log.Checkpoint(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// versions returns the version of every item of a table, by key.
func (b bench) versions(t testing.TB, table *Table) map[string]int64 {
	t.Helper()
	page, err := b.Scan(t.Context(), table, Range{})
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]int64{}
	for _, item := range page.Items {
		n, _ := item["v"].(Number).small()
		found[string(item["id"].(String))] = n
	}
	return found
}

// withTable makes a store on an empty disk, with an empty table t.
func withTable(t testing.TB) (disk *vfs.Mem, b bench, table *Table) {
	t.Helper()
	disk = vfs.NewMem()
	b = open(t, disk)
	return disk, b, b.create(t, "t", byID)
}

// has checks the versions of all items of the table t. The rest of its arguments says when.
func (b bench) has(t testing.TB, want map[string]int64, when string, of ...any) {
	t.Helper()
	if found := b.versions(t, b.table(t, "t")); !maps.Equal(found, want) {
		t.Fatalf("%s: %v, want %v", fmt.Sprintf(when, of...), found, want)
	}
}

// TestACheckpointWritesWhatChanged: its bytes follow the changes, and not the items.
func TestACheckpointWritesWhatChanged(t *testing.T) {
	disk := vfs.NewMem()
	var written atomic.Int64
	b := open(t, vfs.Inject(disk, func(op vfs.Op) error {
		if op.Kind == vfs.OpWrite && !strings.Contains(op.Name, ".wal") {
			written.Add(op.Len)
		}
		return nil
	}))
	table := b.create(t, "t", byID)
	const items, size = 300, 1000
	for i := range items {
		b.put(t, table, sized(fmt.Sprint(i), size, 0))
	}
	b.checkpoint(t)
	if total(dataFiles(t, disk)) < items*size {
		t.Fatalf("the items are not in files: %v", dataFiles(t, disk))
	}
	written.Store(0)
	for i := range 20 {
		b.put(t, table, sized(fmt.Sprint(i), size, 1))
	}
	b.checkpoint(t)
	if written := written.Load(); written > 20*size*3/2 {
		t.Errorf("a checkpoint after 20 of %d items changed wrote %d bytes", items, written)
	}
	written.Store(0)
	b.put(t, table, sized("1", 100, 2))
	b.checkpoint(t)
	if written := written.Load(); written > 4000 {
		t.Errorf("a checkpoint after one small change wrote %d bytes", written)
	}
	b.close(t)
	b = open(t, disk)
	found := b.versions(t, b.table(t, "t"))
	if len(found) != items || found["1"] != 2 || found["2"] != 1 || found["20"] != 0 {
		t.Errorf("after a start: %v", found)
	}
	b.close(t)
}

// TestFilesAreBounded: the same items are written over and over, and the files stay a multiple of
// the items.
func TestFilesAreBounded(t *testing.T) {
	disk, b, table := withTable(t)
	const items, size, rounds = 100, 1000, 60
	most := int64(0)
	want := map[string]int64{}
	rng := rand.New(rand.NewPCG(1, 2))
	for round := range rounds {
		for range items / 3 {
			key := fmt.Sprint(rng.IntN(items))
			if rng.IntN(8) == 0 {
				_, err := b.Delete(t.Context(), table, id(key), func(Item) error { return nil })
				if err != nil {
					t.Fatal(err)
				}
				delete(want, key)
				continue
			}
			b.put(t, table, sized(key, size, round))
			want[key] = int64(round)
		}
		b.checkpoint(t)
		most = max(most, total(dataFiles(t, disk)))
		if round%7 == 6 {
			b.close(t)
			b = open(t, disk)
			table = b.table(t, "t")
			b.has(t, want, "round %d", round)
		}
	}
	// Each file is kept for one more checkpoint, for the snapshot before the newest.
	if bound := int64(items*size*5 + 64<<10); most > bound {
		t.Errorf("%d bytes of items took up to %d bytes of files, above %d",
			items*size, most, bound)
	}
	_, err := b.DropTable(t.Context(), table, func(Stats) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	b.checkpoint(t)
	b.create(t, "another", byID)
	b.checkpoint(t)
	if left := dataFiles(t, disk); len(left) > 0 {
		t.Errorf("files of a dropped table: %v", left)
	}
	b.close(t)
}

// age logs so much that the log does not reach back to its beginning any more.
func (b bench) age(t testing.TB, table *Table) {
	t.Helper()
	for i := range 400 {
		b.put(t, table, sized("aging", 1000, i))
		if i%40 == 0 {
			b.checkpoint(t)
		}
	}
	b.checkpoint(t)
}

// chained returns a disk with data files, and what a start reads there.
func chained(t testing.TB) (*vfs.Mem, map[string]int64) {
	t.Helper()
	disk, b, table := withTable(t)
	b.age(t, table)
	for round := range 3 {
		for i := range 20 {
			b.put(t, table, sized(fmt.Sprint(i+10*round), 300, round))
		}
		b.checkpoint(t)
	}
	found := b.versions(t, table)
	b.close(t)
	return disk, found
}

// copyDisk returns a copy of the data directory.
func copyDisk(t testing.TB, from *vfs.Mem) *vfs.Mem {
	t.Helper()
	to := vfs.NewMem()
	for _, dir := range []string{"data", "data/wal", "data/" + FolderName} {
		if err := to.MkdirAll(dir); err != nil {
			t.Fatal(err)
		}
		names, err := from.List(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		for _, name := range names {
			info, err := from.Stat(path.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			if !info.IsDir() {
				store(t, to, path.Join(dir, name), content(t, from, path.Join(dir, name)))
			}
		}
	}
	return to
}

func content(t testing.TB, disk vfs.FS, name string) []byte {
	t.Helper()
	f, err := disk.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	size, err := f.Size()
	p := make([]byte, size)
	if err == nil {
		_, err = io.ReadFull(io.NewSectionReader(f, 0, size), p)
	}
	if err = errors.Join(err, f.Close()); err != nil && size > 0 {
		t.Fatal(err)
	}
	return p
}

func store(t testing.TB, disk vfs.FS, name string, p []byte) {
	t.Helper()
	f, err := disk.Create(name)
	if err == nil && len(p) > 0 {
		_, err = f.WriteAt(p, 0)
	}
	if err == nil {
		err = errors.Join(f.Sync(), f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}

func mutate(t testing.TB, disk vfs.FS, name string, do func(p []byte) []byte) {
	t.Helper()
	store(t, disk, name, do(content(t, disk, name)))
}

// TestASliceNeverShowsLaterChanges: a sweep reads items after the snapshot's instant, and leaves
// out those that changed since. The files keep their older values until the next snapshot.
func TestASliceNeverShowsLaterChanges(t *testing.T) {
	_, b, table := withTable(t)
	for i := range 40 {
		b.put(t, table, sized(fmt.Sprint(i), 300, 0))
	}
	b.checkpoint(t)
	for range 2 { // the first one begins the sweep and ends its walk, the second one drops the files
		b.chain.forced = true
		b.put(t, table, sized("0", 300, 1))
		finish := b.Freeze()
		b.put(t, table, sized("1", 300, 7))
		b.put(t, table, sized("new", 300, 7))
		_, err := b.Delete(t.Context(), table, id("2"), func(Item) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
		snapshot, err := finish(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		s := newStore(b.cfg)
		if err := s.Restore(snapshot); err != nil {
			t.Fatal(err)
		}
		found := bench{b.log, s}.versions(t, s.mu.byID[1])
		if len(found) != 40 || found["0"] != 1 || found["1"] != 0 || found["new"] != 0 {
			t.Errorf("at the freeze: %d items, %v", len(found), found)
		}
		// A power cut that loses the later changes leaves s. Its next snapshot drops the files.
		if snapshot, err = s.Freeze()(t.Context()); err != nil {
			t.Fatal(err)
		}
		s = newStore(b.cfg)
		if err := s.Restore(snapshot); err != nil {
			t.Fatal(err)
		}
		found = bench{b.log, s}.versions(t, s.mu.byID[1])
		if len(found) != 40 || found["0"] != 1 || found["1"] != 0 || found["new"] != 0 {
			t.Errorf("at the snapshot after a power cut: %d items, %v", len(found), found)
		}
		for _, item := range []Item{sized("1", 300, 0), sized("2", 300, 0)} {
			b.put(t, table, item)
		}
		_, err = b.Delete(t.Context(), table, id("new"), func(Item) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
	}
	b.close(t)
}

// TestCrashesWithFiles loses power between any two changes of the disk.
func TestCrashesWithFiles(t *testing.T) {
	for run := range 6 * soak() {
		seed := rand.Uint64()
		crashWithFiles(t, rand.New(rand.NewPCG(seed, uint64(run))))
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func crashWithFiles(t *testing.T, rng *rand.Rand) {
	disk := vfs.NewCrashable()
	acked := map[string]int64{} // the version; 0: deleted
	version := 0
	for range 6 {
		var crashed atomic.Pointer[vfs.Mem]
		var left atomic.Int64 // changes of the disk until the power is lost
		left.Store(20 + rng.Int64N(600))
		live, odds := disk, rand.New(rand.NewPCG(rng.Uint64(), 0))
		b, err := tryOpen(t.Context(), vfs.Inject(live, func(op vfs.Op) error {
			if op.Kind.Changes() && left.Add(-1) == 0 {
				crashed.Store(live.Crash(odds))
			}
			return nil
		}))
		if err != nil {
			t.Fatal(err)
		}
		table, err := b.Table(t.Context(), world, "t")
		if errors.Is(err, ErrTableNotFound) {
			table = b.create(t, "t", byID)
		}
		perhaps := map[string]int64{} // a change during the power cut
		for step := 0; crashed.Load() == nil && step < 2000; step++ {
			version++
			key, next := fmt.Sprint(rng.IntN(40)), Item(nil)
			perhaps = map[string]int64{key: 0}
			if rng.IntN(6) > 0 {
				next = sized(key, 200+rng.IntN(300), version)
				perhaps[key] = int64(version)
			}
			_, err := b.Update(t.Context(), table, id(key), 600,
				func(Item) (Item, error) { return next, nil })
			if err != nil {
				t.Fatal(err)
			}
			if crashed.Load() == nil {
				maps.Copy(acked, perhaps)
			}
			if rng.IntN(15) == 0 {
				b.checkpoint(t)
			}
		}
		b.close(t)
		if disk = crashed.Load(); disk == nil {
			disk = live.Crash(odds)
		}
		b = open(t, disk)
		table, err = b.Table(t.Context(), world, "t")
		if errors.Is(err, ErrTableNotFound) && len(acked) == 0 {
			b.close(t)
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		found := b.versions(t, table)
		for i := range 40 {
			key := fmt.Sprint(i)
			if after, ok := perhaps[key]; ok && found[key] == after {
				acked[key] = after
			}
			if found[key] != acked[key] {
				t.Errorf("item %s has version %d, acknowledged %d", key, found[key], acked[key])
			}
		}
		b.close(t)
	}
}

// TestAFullDisk: a checkpoint that finds no room for a file changes nothing, and a later one does
// its work.
func TestAFullDisk(t *testing.T) {
	disk := vfs.NewMem()
	var full atomic.Bool
	b := open(t, vfs.Inject(disk, func(op vfs.Op) error {
		if full.Load() && op.Kind.Changes() && strings.Contains(op.Name, FolderName) {
			return vfs.ErrNoSpace
		}
		return nil
	}))
	table := b.create(t, "t", byID)
	put := func(version int) {
		for i := range 30 {
			b.put(t, table, sized(fmt.Sprint(i), 300, version))
		}
	}
	put(0)
	b.checkpoint(t)
	full.Store(true)
	put(1)
	if err := b.log.Checkpoint(t.Context()); !errors.Is(err, vfs.ErrNoSpace) {
		t.Errorf("a checkpoint on a full disk: %v", err)
	}
	killed := copyDisk(t, disk)
	full.Store(false)
	put(2)
	b.checkpoint(t)
	b.close(t)
	for version, disk := range map[int64]*vfs.Mem{1: killed, 2: disk} {
		b := open(t, disk)
		found := b.versions(t, b.table(t, "t"))
		if len(found) != 30 || found["7"] != version {
			t.Errorf("version %d: %v", version, found)
		}
		b.close(t)
	}
}

// TestSparesGiveWay: the log's spare files make room for a file of items.
func TestSparesGiveWay(t *testing.T) {
	disk, b, table := withTable(t)
	b.age(t, table) // it leaves spares
	for i := range 60 {
		b.put(t, table, sized(fmt.Sprint(i), 300, 1))
	}
	disk.SetLimit(disk.Used() + 4<<10)
	before := total(dataFiles(t, disk))
	if err := b.log.Checkpoint(t.Context()); err != nil {
		t.Errorf("a checkpoint: %v", err)
	}
	if now := total(dataFiles(t, disk)); now < before+60*300 {
		t.Errorf("%d bytes of files after %d: the disk was not too small", now, before)
	}
	b.close(t)
}

// TestLeftovers: a start removes the files of a checkpoint that did not end, and uses none of their
// numbers again.
func TestLeftovers(t *testing.T) {
	disk, want := chained(t)
	kept := dataFiles(t, disk)
	for _, name := range []string{"000000000098.items", "000000000099.items.tmp"} {
		store(t, disk, path.Join("data", FolderName, name), []byte("unfinished"))
	}
	b := open(t, disk)
	if found := dataFiles(t, disk); !maps.Equal(found, kept) {
		t.Errorf("after a start: %v, want %v", found, kept)
	}
	if b.chain.next != 99 {
		t.Errorf("the next file is number %d", b.chain.next)
	}
	b.has(t, want, "after a start")
	b.close(t)
}

// TestAnUpgradeWritesAllItems: a snapshot of an older program holds all items. The first one of this
// program writes them into files of bounded length, and goes on after a failure.
func TestAnUpgradeWritesAllItems(t *testing.T) {
	disk := vfs.NewMem()
	var failed atomic.Bool
	b := open(t, vfs.Inject(disk, func(op vfs.Op) error {
		third := strings.Contains(op.Name, "000000000003.items")
		if third && op.Kind == vfs.OpSync && !failed.Swap(true) {
			return vfs.ErrInjected
		}
		return nil
	}))
	old := newStore(Config{})
	meta := &Meta{World: world, Name: "t", Schema: byID}
	if err := old.apply(change{op: changeCreate, table: 1, meta: meta}); err != nil {
		t.Fatal(err)
	}
	const items = 300
	for i := range items {
		item := sized(fmt.Sprint(i), 1000, i)
		old.mu.byID[1].put(newEntry(id(fmt.Sprint(i)).place(), encoded(item), Size(item)))
	}
	all, err := old.Freeze()(t.Context())
	if err != nil || all[0] != snapshotVersion {
		t.Fatal(err)
	}
	s := newStore(b.cfg)
	if err := s.Restore(all); err != nil {
		t.Fatal(err)
	}
	finish := s.Freeze()
	if _, err := finish(t.Context()); !errors.Is(err, vfs.ErrInjected) {
		t.Errorf("with a failure: %v", err)
	}
	snapshot, err := finish(t.Context())
	if err != nil || len(snapshot) > 2000 {
		t.Fatalf("a snapshot of %d bytes, %v", len(snapshot), err)
	}
	found := dataFiles(t, disk)
	for name, size := range found {
		if size > 80<<10 {
			t.Errorf("%s has %d bytes", name, size)
		}
	}
	if len(found) < 4 || len(found) > 6 {
		t.Errorf("files %v", found)
	}
	again := newStore(b.cfg)
	if err := again.Restore(snapshot); err != nil {
		t.Fatal(err)
	}
	if n := len((bench{b.log, again}).versions(t, again.mu.byID[1])); n != items {
		t.Errorf("%d items of %d", n, items)
	}
	b.close(t)
}

// TestASmallStoreHasNoFiles: lease tables stay in the snapshot, as in earlier versions.
func TestASmallStoreHasNoFiles(t *testing.T) {
	disk, b, table := withTable(t)
	for round := range 200 {
		b.put(t, table, sized(fmt.Sprint(round%3), 50, round))
		_, err := b.Delete(t.Context(), table, id(fmt.Sprint("gone", round)),
			func(Item) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
		if round%20 == 0 {
			b.checkpoint(t)
		}
	}
	b.close(t)
	if files := dataFiles(t, disk); len(files) > 0 || snapshotBytes(t, disk) > 1000 {
		t.Errorf("files %v, and a snapshot of %d bytes", files, snapshotBytes(t, disk))
	}
}

// TestTheOlderSnapshotKeepsItsFiles: a store that became small names no file any more, and a start
// leaves those that the snapshot before names.
func TestTheOlderSnapshotKeepsItsFiles(t *testing.T) {
	disk, b, table := withTable(t)
	for i := range 30 {
		b.put(t, table, sized(fmt.Sprint(i), 300, 0))
	}
	b.age(t, table)
	for i := range 30 {
		_, err := b.Delete(t.Context(), table, id(fmt.Sprint(i)), func(Item) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err := b.Delete(t.Context(), table, id("aging"), func(Item) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	b.put(t, table, sized("last", 10, 5))
	b.close(t) // its snapshot names no file
	for range 2 {
		b = open(t, disk) // it makes no snapshot
		b.close(t)
	}
	newest, err := wal.NewestSnapshot(disk, "data")
	if err != nil {
		t.Fatal(err)
	}
	mutate(t, disk, path.Join("data", newest), func(p []byte) []byte {
		p[len(p)/2] ^= 1
		return p
	})
	b = open(t, disk)
	if found := b.versions(t, b.table(t, "t")); len(found) != 1 || found["last"] != 5 {
		t.Errorf("from the older snapshot: %v", found)
	}
	b.close(t)
}

// TestAReadOnlyStartKeepsFiles: a start on a full disk does not reach its end before the first
// checkpoint, which leaves the files of the snapshot before.
func TestAReadOnlyStartKeepsFiles(t *testing.T) {
	disk, want := chained(t)
	b := open(t, disk)
	snapshot, err := b.Freeze()(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s := newStore(b.cfg)
	if err := s.Restore(snapshot); err != nil {
		t.Fatal(err)
	}
	for _, table := range s.mu.byID { // so much that a snapshot names other files
		for key := range want {
			e := id(key).entry()
			table.put(newEntry(e.place, encoded(sized(key, 20000, 5)), 20000))
		}
	}
	for range 9 {
		if _, err := s.Freeze()(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.chain.forced = s.chain.sweep.phase == sweepNone
	}
	if err := s.Keep(true); err != nil {
		t.Fatal(err)
	}
	if err := newStore(b.cfg).Restore(snapshot); err != nil {
		t.Errorf("from the snapshot before: %v", err)
	}
	b.close(t)
}
