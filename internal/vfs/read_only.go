package vfs

import (
	"errors"
	"io/fs"
	"os"
)

// ReadOnly returns a view of a file system for reading. An operation that would change it fails
// with an fs.ErrPermission. Files of the operating system are opened for reading only, so the
// view works without permission to write.
//
// Lock takes the lock of the folder, and of the file if that exists; reading suffices for that. In
// memory, without the file, Lock succeeds without taking the lock.
func ReadOnly(fsys FS) FS { return readOnly{fsys} }

type readOnly struct{ FS }

func refuse(op, name string) error {
	return &fs.PathError{Op: op, Path: name, Err: fs.ErrPermission}
}

func (r readOnly) Create(name string) (File, error) { return nil, refuse("create", name) }
func (r readOnly) Remove(name string) error         { return refuse("remove", name) }
func (r readOnly) Rename(from, _ string) error      { return refuse("rename", from) }
func (r readOnly) Link(from, _ string) error        { return refuse("link", from) }
func (r readOnly) Mkdir(name string) error          { return refuse("mkdir", name) }
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

func (r readOnly) Lock(name string) (Lock, error) {
	if _, ok := r.FS.(OS); ok {
		return lockOS(name, os.O_RDONLY)
	}
	if _, err := r.Stat(name); errors.Is(err, fs.ErrNotExist) {
		return noLock{}, nil
	} else if err != nil {
		return nil, err
	}
	return r.FS.Lock(name)
}

// noLock is the lock of a folder that no process can have locked.
type noLock struct{}

func (noLock) Close() error { return nil }
func (noLock) Check() error { return nil }

type readOnlyFile struct {
	File
	name string
}

func (f readOnlyFile) WriteAt([]byte, int64) (int, error) { return 0, refuse("write", f.name) }
func (f readOnlyFile) Allocate(int64) error               { return refuse("allocate", f.name) }
func (f readOnlyFile) Truncate(int64) error               { return refuse("truncate", f.name) }
func (f readOnlyFile) Sync() error                        { return refuse("sync", f.name) }
