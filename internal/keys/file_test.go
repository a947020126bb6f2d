package keys

import (
	"io"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/runnel-stream/runnel/internal/vfs"
)

func contents(t *testing.T, fsys vfs.FS, name string) string {
	t.Helper()
	file, err := fsys.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	size, err := file.Size()
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(io.NewSectionReader(file, 0, size))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// The power fails before any operation of any of several replacements: the file is as one of
// them made it, and none that was done is lost.
func TestReplaceFileCrashes(t *testing.T) {
	soak, _ := strconv.Atoi(os.Getenv("RUNNEL_SOAK"))
	for seed := range uint64(200 * max(1, soak)) {
		random := rand.New(rand.NewPCG(seed, 1))
		disk := vfs.NewCrashable()
		if err := replaceFile(disk, "keys", []byte("0")); err != nil {
			t.Fatal(err)
		}
		text := func(version int) string {
			return strings.Repeat(strconv.Itoa(version), 1+(version*700)%1500)
		}
		done, left := 0, random.IntN(20)
		var after *vfs.Mem
		fsys := vfs.Inject(disk, func(vfs.Op) error {
			if left--; left < 0 {
				if after == nil {
					after = disk.Crash(random)
				}
				return vfs.ErrInjected
			}
			return nil
		})
		for version := 1; replaceFile(fsys, "keys", []byte(text(version))) == nil; version++ {
			done = version
		}
		got := contents(t, after, "keys")
		if got != text(done) && got != text(done+1) && (done > 0 || got != "0") {
			t.Fatalf("seed %d: after %d replacements the file has %d bytes, %.9q",
				seed, done, len(got), got)
		}
	}
}
