package archive_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/runnel-stream/runnel/internal/vfs"
	"github.com/runnel-stream/runnel/sink/archive"
)

// TestProbe fails each file operation of a probe in turn. The probe reports every one but the last
// removals, and leaves nothing behind when none fails.
func TestProbe(t *testing.T) {
	probe := func(mem *vfs.Mem, hook func(vfs.Op) error) error {
		a, err := archive.New(archive.Config{
			Store: archive.NewDirStoreOn(vfs.Inject(mem, hook), "data/to"),
		})
		if err != nil {
			t.Fatal(err)
		}
		return a.Probe(t.Context())
	}
	kinds := map[vfs.OpKind]int{}
	var folders []string
	mem := vfs.NewMem()
	if err := probe(mem, func(op vfs.Op) error {
		if kinds[op.Kind]++; op.Kind == vfs.OpSyncDir {
			folders = append(folders, op.Name)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if names, err := mem.List("data/to"); err != nil || len(names) > 0 {
		t.Errorf("the probe left %v (%v)", names, err)
	}
	if !slices.Equal(folders, []string{"data", "data/to"}) {
		t.Errorf("synced are the folders %v", folders)
	}
	for _, kind := range []vfs.OpKind{
		vfs.OpMkdir, vfs.OpCreate, vfs.OpWrite, vfs.OpSync, vfs.OpLink, vfs.OpSyncDir,
	} {
		if kinds[kind] == 0 {
			t.Errorf("a commit needs %v, and the probe does not try it: %v", kind, kinds)
		}
		for n := 1; n <= kinds[kind]; n++ {
			err := probe(vfs.NewMem(), vfs.FailNth(n, func(op vfs.Op) bool {
				return op.Kind == kind
			}, errInjected))
			if !errors.Is(err, errInjected) {
				t.Errorf("%v number %d fails, and the probe says %v", kind, n, err)
			}
		}
	}
	full := vfs.NewMem()
	full.SetLimit(100)
	if err := probe(full, func(vfs.Op) error { return nil }); !errors.Is(err, vfs.ErrNoSpace) {
		t.Errorf("a full disk: %v", err)
	}
	if names, err := full.List("data/to"); err != nil || len(names) > 0 {
		t.Errorf("the probe of a full disk left %v (%v)", names, err)
	}
}
