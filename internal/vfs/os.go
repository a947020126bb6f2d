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

// Mkdir implements FS.
func (OS) Mkdir(name string) error { return os.Mkdir(filepath.FromSlash(name), dirMode) }

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
func (OS) Lock(name string) (Lock, error) {
	return lockOS(name, os.O_RDWR|os.O_CREATE)
}

func lockOS(name string, flag int) (Lock, error) {
	path := filepath.FromSlash(name)
	l := &osLock{dir: filepath.Dir(path)}
	var err error
	if l.was, err = os.Stat(l.dir); err != nil {
		return nil, err
	}
	if l.folder, err = lockFolder(l.dir); err != nil {
		return nil, &fs.PathError{Op: "lock", Path: name, Err: err}
	}
	l.file, err = os.OpenFile(path, flag, fileMode)
	if errors.Is(err, fs.ErrNotExist) && flag&os.O_CREATE == 0 {
		l.file = nil
		return l, nil
	}
	if err != nil {
		l.file = nil
		return nil, errors.Join(err, l.Close())
	}
	if err := lockFile(l.file); err != nil {
		_ = l.Close() // nothing was written
		return nil, &fs.PathError{Op: "lock", Path: name, Err: err}
	}
	return l, nil
}

// osLock is a lock of the operating system.
type osLock struct {
	dir          string
	was          fs.FileInfo // of the folder
	folder, file *os.File    // folder is nil on a system that does not lock folders
}

// Close implements Lock.
func (l *osLock) Close() error {
	var errs []error
	for _, f := range []*os.File{l.file, l.folder} {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	return errors.Join(errs...)
}

// Check implements Lock.
func (l *osLock) Check() error {
	now, err := os.Stat(l.dir)
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && !os.SameFile(l.was, now):
		return &fs.PathError{Op: "check", Path: l.dir, Err: ErrGone}
	default:
		return err
	}
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
