package archive_test

import (
	"errors"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/runnel-stream/runnel/internal/vfs"
	"github.com/runnel-stream/runnel/sink/archive"
)

// After a power cut at any operation of a Put, the object is the old one or the new one, as a
// whole, and the new one if Put has returned.
func TestPutCrash(t *testing.T) {
	const name, old, young = "tables/t/2020/01/x", "old", "young"
	for at := 1; ; at++ {
		cut := false
		for seed := range uint64(20) {
			for _, after := range []bool{false, true} {
				disk := vfs.NewCrashable()
				if err := archive.NewDirStoreOn(disk, "a/to").Put(t.Context(), name, []byte(old)); err != nil {
					t.Fatal(err)
				}
				count := 0
				failing := vfs.Inject(disk, func(vfs.Op) error {
					if count++; count > at || count == at && !after {
						cut = true
						return errInjected
					}
					return nil
				})
				err := archive.NewDirStoreOn(failing, "a/to").Put(t.Context(), name, []byte(young))
				if err != nil && !errors.Is(err, errInjected) {
					t.Fatal(err)
				}
				crashed := disk.Crash(rand.New(rand.NewPCG(seed, uint64(at))))
				from, getErr := archive.NewDirStoreOn(crashed, "a/to").Get(t.Context(), name)
				if getErr != nil {
					t.Fatalf("operation %d: %v", at, getErr)
				}
				text, getErr := io.ReadAll(from)
				if getErr != nil {
					t.Fatal(getErr)
				}
				if string(text) != young && (err == nil || string(text) != old) {
					t.Fatalf("operation %d (done: %v): %q after %v", at, after, text, err)
				}
			}
		}
		if !cut {
			if at < 5 {
				t.Errorf("a put has %d operations", at)
			}
			return
		}
	}
}
