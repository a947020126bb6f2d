package fsck_test

import (
	"errors"
	"io/fs"
	"path"
	"strings"
	"testing"

	"github.com/runnel-stream/runnel/internal/vfs"
	"github.com/runnel-stream/runnel/server/internal/fsck"
	"github.com/runnel-stream/runnel/server/internal/wal"
)

const (
	killed = "testdata/format-1/killed" // 4 shards, 160 records, 40 of them in the log alone
	segTwo = "data/shards/2/00000000000000000001.seg"
)

func golden(t *testing.T, from string) *vfs.Mem {
	t.Helper()
	disk := vfs.NewMem()
	copyTree(t, vfs.OS{}, from, disk, "data")
	return disk
}

func text(t *testing.T, disk vfs.FS) (*fsck.Report, string) {
	t.Helper()
	report, err := fsck.Check(t.Context(), disk, "data")
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := report.WriteText(&out); err != nil {
		t.Fatal(err)
	}
	return report, out.String()
}

// A finding gives the place of the damage, and the lost data.
func TestFindings(t *testing.T) {
	flip := func(name string, at int) func(t *testing.T, disk *vfs.Mem) {
		return func(t *testing.T, disk *vfs.Mem) {
			content := read(t, disk, name)
			content[at] ^= 1
			write(t, disk, name, content)
		}
	}
	cut := func(name string, size int) func(t *testing.T, disk *vfs.Mem) {
		return func(t *testing.T, disk *vfs.Mem) {
			write(t, disk, name, read(t, disk, name)[:size])
		}
	}
	remove := func(name string) func(t *testing.T, disk *vfs.Mem) {
		return func(t *testing.T, disk *vfs.Mem) {
			if err := disk.Remove(name); err != nil {
				t.Fatal(err)
			}
		}
	}
	const newest = "data/wal/000000000004.wal"
	for name, c := range map[string]struct {
		do   func(t *testing.T, disk *vfs.Mem)
		want []string
	}{
		"a bit of a segment": {flip(segTwo, 40), []string{
			"damaged: " + segTwo + ", byte 37: the checksum does not match",
			"lost: 84 records of orders shardId-000000000001, the indexes 2 to 85",
		}},
		"a segment cut off": {cut(segTwo, 6000), []string{
			"the file ends at offset 6000", "of orders shardId-000000000001, the indexes 74 to 85",
		}},
		"a segment that is gone": {remove(segTwo), []string{
			segTwo + ", byte 0: the file is missing", "lost: 85 records of orders",
		}},
		"a frame of the log": {flip(newest, 4096+200), []string{
			"damaged: " + newest, "no frame verifies in 1", "a server does not start with it",
			"lost: 1 record of orders shardId-000000000003",
		}},
		"a first block": {flip(newest, 20), []string{
			"damaged: " + newest + ", byte 0: the first block does not verify",
		}},
		"the snapshot": {flip("data/snapshot-00000000000000017760", 700), []string{
			"data/snapshot-00000000000000017760", "does not verify",
		}},
		"no snapshot": {remove("data/snapshot-00000000000000017760"), []string{
			"data/wal", "the log files that hold this place are gone",
		}},
		"no FORMAT": {remove("data/FORMAT"), []string{
			"FORMAT", "is gone",
			"damaged: 1 finding: runnel fsck data --repair shows what a repair would save",
		}},
		"a torn frame": {flip(newest, lastPayload(t)), []string{
			"a frame of 80 bytes", "nobody was told that it is there", "sound",
		}},
		"files of others": {func(t *testing.T, disk *vfs.Mem) {
			write(t, disk, "data/notes.txt", []byte("mine"))
			write(t, disk, "data/snapshot-00000000000000000001.tmp", nil)
			write(t, disk, "data/shards/2/00000000000000000900.seg", []byte("unfinished"))
			if err := disk.MkdirAll("data/shards/77"); err != nil {
				t.Fatal(err)
			}
		}, []string{
			"3 files or folders without use", "data/snapshot-00000000000000000001.tmp",
			"data/shards/77", "000900.seg", "1 file or folder not of the server",
			"data/notes.txt", "sound",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			disk := golden(t, killed)
			c.do(t, disk)
			report, out := text(t, disk)
			for _, want := range c.want {
				if !strings.Contains(out, want) {
					t.Errorf("%q is not in\n%s", want, out)
				}
			}
			if sound := strings.Contains(out, "sound: "); sound != report.OK {
				t.Errorf("OK is %v:\n%s", report.OK, out)
			}
		})
	}
}

// lastPayload returns the place of a byte of the last frame's payload in the golden log.
func lastPayload(t *testing.T) int {
	t.Helper()
	content := read(t, vfs.OS{}, killed+"/wal/000000000004.wal")
	return len(strings.TrimRight(string(content), "\x00")) - 1
}

// The end of the log is gone, and segments hold its records.
func TestALogWithoutItsEndIsFound(t *testing.T) {
	disk := golden(t, killed)
	name := "data/wal/000000000004.wal"
	content := read(t, disk, name)
	clear(content[4096+2000:])
	write(t, disk, name, content)
	report, out := text(t, disk)
	if report.OK || !strings.Contains(out, "holds records that the log does not") {
		t.Error(out)
	}
}

func TestWhatIsNoDataDirectory(t *testing.T) {
	disk := vfs.NewMem()
	if _, err := fsck.Check(t.Context(), disk, "data"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("nothing there: %v", err)
	}
	if err := disk.MkdirAll("data/wal"); err != nil {
		t.Fatal(err)
	}
	if _, err := fsck.Check(t.Context(), disk, "data"); !errors.Is(err, wal.ErrNoLog) {
		t.Errorf("an empty folder: %v", err)
	}
	write(t, disk, "data/FORMAT", []byte("99\n"))
	_, err := fsck.Check(t.Context(), disk, "data")
	if !errors.Is(err, wal.ErrNewerFormat) || !strings.Contains(err.Error(), "newer runnel") {
		t.Errorf("a newer format: %v", err)
	}
	write(t, disk, "data/FORMAT", []byte("2\n"))
	sound(t, disk) // as a start of that version leaves it that was cut off at once
	write(t, disk, "data/FORMAT", []byte("3\n"))
	if report, err := fsck.Check(t.Context(), disk, "data"); err != nil || report.OK {
		t.Errorf("a directory of which the log is gone: %v, %+v", err, report)
	}
}

// Nothing is opened for writing, and an error of reading is no verdict.
func TestErrorsOfReading(t *testing.T) {
	disk := golden(t, killed)
	for nth := 1; ; nth++ {
		failing := vfs.Inject(disk, vfs.FailNth(nth, func(op vfs.Op) bool {
			if op.Kind.Changes() && op.Kind != vfs.OpLock {
				t.Errorf("%s", op)
			}
			return op.Kind == vfs.OpRead || op.Kind == vfs.OpOpen || op.Kind == vfs.OpList
		}, nil))
		report, err := fsck.Check(t.Context(), failing, "data")
		if err == nil && report.OK {
			if nth < 20 {
				t.Errorf("only %d reads", nth)
			}
			return
		}
		if !errors.Is(err, vfs.ErrInjected) {
			t.Fatalf("read %d fails: %v, %+v", nth, err, report)
		}
	}
}

// A directory on a disk that may not be written is read, too.
func TestTheDiskMayBeReadOnly(t *testing.T) {
	report, err := fsck.Check(t.Context(), vfs.ReadOnly(vfs.OS{}), killed)
	if err != nil || !report.OK {
		t.Errorf("%v, %+v", err, report)
	}
	if dir := t.TempDir(); true {
		copyTree(t, vfs.OS{}, killed, vfs.OS{}, path.Join(dir, "data"))
		if err := (vfs.OS{}).Remove(path.Join(dir, "data", "LOCK")); err != nil {
			t.Fatal(err)
		}
		if _, err := fsck.Check(t.Context(), vfs.OS{}, path.Join(dir, "data")); err != nil {
			t.Error(err)
		}
		if _, err := (vfs.OS{}).Stat(path.Join(dir, "data", "LOCK")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("LOCK was made: %v", err)
		}
	}
}
