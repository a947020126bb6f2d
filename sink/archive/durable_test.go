package archive_test

import (
	"errors"
	"io/fs"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/runnel-stream/runnel/internal/vfs"
	"github.com/runnel-stream/runnel/sink/archive"
	"github.com/runnel-stream/runnel/sink/sinktest"
)

// unsynced returns a disk on which a writer has linked a first link of three records and could
// not sync its name: others see it, and a crash may lose it.
func unsynced(t *testing.T) *vfs.Mem {
	disk := vfs.NewCrashable()
	linked := false
	store := archive.NewDirStoreOn(vfs.Inject(disk, func(op vfs.Op) error {
		if linked && op.Kind == vfs.OpSyncDir {
			return errInjected
		}
		linked = linked || op.Kind == vfs.OpLink
		return nil
	}), "to")
	p := &place{t, store}
	w := p.open(archive.Config{}, shardOf(parent))
	p.write(w, parent, 0, 3)
	if _, err := w.Flush(t.Context()); !errors.Is(err, errInjected) {
		t.Fatalf("flush: %v", err)
	}
	return disk
}

// TestAdoptedIsDurable shows that a writer never builds on a link that a crash can still remove.
func TestAdoptedIsDurable(t *testing.T) {
	const name = "orders@1700000000123/shardId-000000000000/001-0-0000000000.ndjson.gz"
	for how, meet := range map[string]func(p *place, store archive.Store){
		"opening": func(p *place, store archive.Store) {
			p.store = store
			if end := p.open(archive.Config{}, shardOf(parent)).Committed().End; end != at(2) {
				p.Fatalf("committed up to %s", end)
			}
		},
		"putting": func(p *place, store archive.Store) {
			if err := store.PutIfAbsent(p.Context(), name, nil); !errors.Is(err, archive.ErrObjectExists) {
				p.Fatal(err)
			}
		},
	} {
		lost := 0
		for seed := range uint64(20 * sinktest.Soak()) {
			disk := unsynced(t)
			if !stands(t, disk.Crash(rand.New(rand.NewPCG(seed, 1))), name) {
				lost++
			}
			meet(&place{T: t}, archive.NewDirStoreOn(disk, "to"))
			if !stands(t, disk.Crash(rand.New(rand.NewPCG(seed, 1))), name) {
				t.Errorf("%s, seed %d: the adopted link is gone", how, seed)
			}
		}
		if lost == 0 {
			t.Error("the crash takes nothing away")
		}
		t.Logf("soak: %d seeds, %d crashes", 20*sinktest.Soak(), 2*20*sinktest.Soak())
	}
}

func stands(t *testing.T, disk *vfs.Mem, name string) bool {
	t.Helper()
	_, err := disk.Stat("to/" + name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return err == nil
}

// TestFoldersAreSynced shows that a store relies on no other for the names of folders, whether it
// builds on them by putting or by adopting: another process may have just made them.
func TestFoldersAreSynced(t *testing.T) {
	disk := vfs.NewMem()
	var synced []string
	store := func() *archive.DirStore {
		return archive.NewDirStoreOn(vfs.Inject(disk, func(op vfs.Op) error {
			if op.Kind == vfs.OpSyncDir {
				synced = append(synced, op.Name)
			}
			return nil
		}), "data/to")
	}
	if err := disk.MkdirAll("data/to/stream/shard"); err != nil {
		t.Fatal(err)
	}
	want := []string{"data", "data/to", "data/to/stream", "data/to/stream/shard"}
	check := func(err error, want []string) {
		t.Helper()
		slices.Sort(synced)
		if err != nil || !slices.Equal(synced, want) {
			t.Errorf("synced %q, want %q (%v)", synced, want, err)
		}
		synced = nil
	}
	s := store()
	check(s.PutIfAbsent(t.Context(), "stream/shard/a", nil), want)
	check(s.PutIfAbsent(t.Context(), "stream/shard/b", nil), want[3:]) // once is enough
	check(s.Settle(t.Context(), "stream/shard"), want[3:])
	check(store().Settle(t.Context(), "stream/shard"), want)
	check(store().Settle(t.Context(), "stream/none"), []string{"data/to/stream/none"}) // not there
}
