package vfs

import (
	"errors"
	"path/filepath"
	"syscall"
	"testing"
)

// A failed write of one file is the error of the sync of all, with its number. A sandbox that forbids
// the check leaves a sync of each.
func TestSyncTogetherReportsWrites(t *testing.T) {
	files := written(t, OS{}, filepath.ToSlash(t.TempDir()), 100)
	if _, done, _ := syncTogether(files); !done {
		t.Skip("SKIP: the file system of the tests is none whose files are synced together")
	}
	whole := checkWrites
	t.Cleanup(func() { checkWrites = whole })
	calls := 0
	checkWrites = func(int) error {
		if calls++; calls == 43 {
			return syscall.EIO
		}
		return nil
	}
	if n, names, err := SyncFiles(files, nil); n != 42 || names || !errors.Is(err, syscall.EIO) {
		t.Errorf("file %d failed (names %v): %v; want file 42", n, names, err)
	}
	checkWrites = func(int) error { return syscall.EPERM }
	if n, names, err := SyncFiles(files, nil); n != 100 || names || err != nil {
		t.Errorf("%d files were synced (names %v): %v; want each by itself", n, names, err)
	}
}
