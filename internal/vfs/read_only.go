package vfs

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// ReadOnly returns a view of a file system for reading. An operation that would change it fails
// with an fs.ErrPermission. Files of the operating system are opened for reading only, so the
// view works without permission to write.
//
// Lock takes the lock if its file exists; reading suffices for that. Without the file no process
// can hold the lock, and Lock succeeds without taking it.
func ReadOnly(fsys FS) FS { return readOnly{fsys} }

type readOnly struct{ FS }

func refuse(op, name string) error {
	return &fs.PathError{Op: op, Path: name, Err: fs.ErrPermission}
}

func (r readOnly) Create(name string) (File, error) { return nil, refuse("create", name) }
func (r readOnly) Remove(name string) error         { return refuse("remove", name) }
func (r readOnly) Rename(from, _ string) error      { return refuse("rename", from) }
func (r readOnly) Link(from, _ string) error        { return refuse("link", from) }
func (r readOnly) MkdirAll(name string) error       { return refuse("mkdir", name) }
func (r readOnly) SyncDir(dir string) error         { return refuse("sync", dir) }

func (r readOnly) Open(name string) (File, error) {
	var file File
	var err error
	if _, ok := r.FS.(OS); ok {
		file, err = openOS(name, os.O_RDONLY)
	} else {
		file, err = r.FS.Open(name)
	}
	if err != nil {
		return nil, err
	}
	return readOnlyFile{file, name}, nil
}

func (r readOnly) Lock(name string) (io.Closer, error) {
	if _, err := r.Stat(name); errors.Is(err, fs.ErrNotExist) {
		return io.NopCloser(nil), nil
	} else if err != nil {
		return nil, err
	}
	if _, ok := r.FS.(OS); !ok {
		return r.FS.Lock(name)
	}
	f, err := os.Open(filepath.FromSlash(name))
	if err != nil {
		return nil, err
	}
	if err := lockFile(f); err != nil {
		_ = f.Close() // nothing was written
		return nil, &fs.PathError{Op: "lock", Path: name, Err: err}
	}
	return f, nil
}

type readOnlyFile struct {
	File
	name string
}

func (f readOnlyFile) WriteAt([]byte, int64) (int, error) { return 0, refuse("write", f.name) }
func (f readOnlyFile) Allocate(int64) error               { return refuse("allocate", f.name) }
func (f readOnlyFile) Truncate(int64) error               { return refuse("truncate", f.name) }
func (f readOnlyFile) Sync() error                        { return refuse("sync", f.name) }
