package vfs

import (
	"errors"
	"io/fs"
	"path"
	"testing"
)

// A read-only view allows every read and the lock, and no change.
func TestReadOnly(t *testing.T) {
	for name, base := range map[string]struct {
		FS
		dir string
	}{
		"OS": {OS{}, t.TempDir()}, "memory": {NewMem(), "d"},
	} {
		t.Run(name, func(t *testing.T) {
			file := path.Join(base.dir, "f")
			err := base.MkdirAll(base.dir)
			if err != nil {
				t.Fatal(err)
			}
			made, err := base.Create(file)
			if err == nil {
				_, err = made.WriteAt([]byte("abc"), 0)
			}
			if err = errors.Join(err, made.Close()); err != nil {
				t.Fatal(err)
			}
			view := ReadOnly(base.FS)
			f, err := view.Open(file)
			if err != nil {
				t.Fatal(err)
			}
			p := make([]byte, 3)
			if _, err := f.ReadAt(p, 0); err != nil || string(p) != "abc" {
				t.Errorf("read %q, %v", p, err)
			}
			_, createErr := view.Create(file)
			_, writeErr := f.WriteAt(p, 0)
			for what, err := range map[string]error{
				"create": createErr, "write": writeErr, "truncate": f.Truncate(0),
				"allocate": f.Allocate(9), "sync": f.Sync(), "remove": view.Remove(file),
				"rename": view.Rename(file, file+"2"), "link": view.Link(file, file+"2"),
				"mkdir": view.MkdirAll(file + "d"), "sync folder": view.SyncDir(base.dir),
			} {
				if !errors.Is(err, fs.ErrPermission) {
					t.Errorf("%s: %v", what, err)
				}
			}
			if err := f.Close(); err != nil {
				t.Error(err)
			}
			if names, err := view.List(base.dir); err != nil || len(names) != 1 {
				t.Errorf("files %q, %v", names, err)
			}
			readOnlyLocks(t, base.FS, path.Join(base.dir, "LOCK"))
		})
	}
}

func readOnlyLocks(t *testing.T, base FS, name string) {
	t.Helper()
	free, err := ReadOnly(base).Lock(name)
	if err == nil {
		err = free.Close()
	}
	if _, statErr := base.Stat(name); err != nil || !errors.Is(statErr, fs.ErrNotExist) {
		t.Errorf("without the lock's file: %v, %v", err, statErr)
	}
	held, err := base.Lock(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ReadOnly(base).Lock(name); !errors.Is(err, ErrLocked) {
		t.Errorf("a lock that another holds: %v", err)
	}
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}
	held, err = ReadOnly(base).Lock(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := base.Lock(name); !errors.Is(err, ErrLocked) {
		t.Errorf("beside a reader: %v", err)
	}
	if err := held.Close(); err != nil {
		t.Error(err)
	}
}
