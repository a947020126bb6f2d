package vfs

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// OS is the operating system's file system. The zero value is ready.
type OS struct{}

var _ FS = OS{}

// The modes of new files and folders, before the process's umask.
const (
	fileMode = 0o644
	dirMode  = 0o755
)

// Create implements FS.
func (OS) Create(name string) (File, error) {
	return openOS(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC)
}

// Open implements FS.
func (OS) Open(name string) (File, error) { return openOS(name, os.O_RDWR) }

// Remove implements FS.
func (OS) Remove(name string) error { return os.Remove(filepath.FromSlash(name)) }

// Rename implements FS.
func (OS) Rename(from, to string) error {
	return os.Rename(filepath.FromSlash(from), filepath.FromSlash(to))
}

// Link implements FS.
func (OS) Link(from, to string) error {
	return os.Link(filepath.FromSlash(from), filepath.FromSlash(to))
}

// MkdirAll implements FS.
func (o OS) MkdirAll(name string) error {
	dir := filepath.Clean(filepath.FromSlash(name))
	info, err := os.Stat(dir)
	if err == nil {
		if !info.IsDir() {
			return &fs.PathError{Op: "mkdir", Path: name, Err: errNotDir}
		}
		return nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	parent := filepath.Dir(dir)
	if parent != dir {
		if err := o.MkdirAll(filepath.ToSlash(parent)); err != nil {
			return err
		}
	}
	// Another process may have made it concurrently. Sync it even then, since the other process
	// may not have synced it yet.
	if err := os.Mkdir(dir, dirMode); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return o.SyncDir(filepath.ToSlash(parent))
}

// List implements FS.
func (OS) List(dir string) ([]string, error) {
	entries, err := os.ReadDir(filepath.FromSlash(dir))
	if err != nil {
		return nil, err
	}
	names := make([]string, len(entries))
	for i, entry := range entries {
		names[i] = entry.Name()
	}
	return names, nil
}

// Stat implements FS.
func (OS) Stat(name string) (fs.FileInfo, error) { return os.Stat(filepath.FromSlash(name)) }

// SyncDir implements FS.
func (OS) SyncDir(dir string) error { return syncDir(filepath.FromSlash(dir)) }

// Lock implements FS.
func (OS) Lock(name string) (io.Closer, error) {
	f, err := os.OpenFile(filepath.FromSlash(name), os.O_RDWR|os.O_CREATE, fileMode)
	if err != nil {
		return nil, err
	}
	if err := lockFile(f); err != nil {
		_ = f.Close() // nothing was written
		return nil, &fs.PathError{Op: "lock", Path: name, Err: err}
	}
	return f, nil
}

type osFile struct{ *os.File }

func openOS(name string, flag int) (File, error) {
	f, err := os.OpenFile(filepath.FromSlash(name), flag, fileMode)
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

// Size implements File.
func (f osFile) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// Allocate implements File.
func (f osFile) Allocate(size int64) error {
	have, err := f.Size()
	if err != nil || have >= size {
		return err
	}
	err = fallocate(f.File, have, size-have)
	if errors.Is(err, errors.ErrUnsupported) {
		return fill(f.File, have, size)
	}
	if err != nil {
		return &fs.PathError{Op: "allocate", Path: f.Name(), Err: err}
	}
	return nil
}

// Sync implements File.
func (f osFile) Sync() error {
	if err := datasync(f.File); err != nil {
		return &fs.PathError{Op: "sync", Path: f.Name(), Err: err}
	}
	return nil
}

// fill writes zeros to [from, to), to take room where the operating system has no call for that.
func fill(w io.WriterAt, from, to int64) error {
	zeros := make([]byte, 256<<10)
	for from < to {
		n, err := w.WriteAt(zeros[:min(int64(len(zeros)), to-from)], from)
		if err != nil {
			return err
		}
		from += int64(n)
	}
	return nil
}
