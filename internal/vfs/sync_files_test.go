package vfs

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"syscall"
	"testing"
)

// written makes n files with a byte in each.
func written(tb testing.TB, fsys FS, dir string, n int) []File {
	tb.Helper()
	files := make([]File, n)
	for i := range files {
		file, err := fsys.Create(fmt.Sprintf("%s/%d", dir, i))
		if err == nil {
			_, err = file.WriteAt([]byte("x"), 0)
		}
		if err != nil {
			tb.Fatal(err)
		}
		files[i] = file
		tb.Cleanup(func() { _ = file.Close() })
	}
	return files
}

func TestSyncFiles(t *testing.T) {
	for _, n := range []int{0, 1, 10, 200} {
		files := written(t, OS{}, filepath.ToSlash(t.TempDir()), n)
		if done, _, err := SyncFiles(files, nil); done != n || err != nil {
			t.Errorf("%d of %d files were synced: %v", done, n, err)
		}
	}
}

// The error is that of the file, alone or together.
func TestSyncFilesNamesTheFile(t *testing.T) {
	files := written(t, OS{}, filepath.ToSlash(t.TempDir()), 200)
	if err := files[130].Close(); err != nil {
		t.Fatal(err)
	}
	if n, names, err := SyncFiles(files, nil); n != 130 || names || !errors.Is(err, fs.ErrClosed) {
		t.Errorf("file %d failed (names %v): %v; want file 130 as closed", n, names, err)
	}
	failing := Inject(NewMem(), func(op Op) error {
		if op.Kind == OpSync && op.Name == "d/150" {
			return syscall.EIO
		}
		return nil
	})
	if err := failing.MkdirAll("d"); err != nil {
		t.Fatal(err)
	}
	files = written(t, failing, "d", 200)
	if n, names, err := SyncFiles(files, nil); n != 150 || names || !errors.Is(err, syscall.EIO) {
		t.Errorf("file %d failed (names %v): %v; want file 150", n, names, err)
	}
}

func TestSyncFilesStops(t *testing.T) {
	fsys := NewMem()
	if err := fsys.MkdirAll("d"); err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	close(stop)
	if n, names, err := SyncFiles(written(t, fsys, "d", 100), stop); n != 0 || names || err != nil {
		t.Errorf("%d files after the stop, names %v, error %v", n, names, err)
	}
}

// BenchmarkSyncFiles compares a sync of each of so many files with one of all.
func BenchmarkSyncFiles(b *testing.B) {
	for _, n := range []int{16, 64, 512, 4000} {
		files := written(b, OS{}, filepath.ToSlash(b.TempDir()), n)
		block := make([]byte, 4096)
		run := func(name string, sync func() error) {
			b.Run(fmt.Sprintf("files=%d/%s", n, name), func(b *testing.B) {
				size := int64(0)
				for b.Loop() {
					for _, file := range files {
						if _, err := file.WriteAt(block, size); err != nil {
							b.Fatal(err)
						}
					}
					size += 4096
					if err := sync(); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
		run("each", func() error {
			for _, file := range files {
				if err := file.Sync(); err != nil {
					return err
				}
			}
			return nil
		})
		run("together", func() error {
			_, done, err := syncTogether(files)
			if !done {
				b.Skip("SKIP: fewer files than a sync of all is for, or not on this system")
			}
			return err
		})
	}
}
