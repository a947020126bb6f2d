package backup

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// folder is a Target: a folder of the operating system. Put syncs each file, and finish the names.
type folder struct{ path string }

// Put implements Target.
func (f *folder) Put(name string, mode fs.FileMode, size int64, r io.Reader) error {
	full := filepath.Join(f.path, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		return err
	}
	file, err := os.OpenFile(full, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	_, err = io.CopyN(file, r, size)
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return errors.Join(err, file.Sync(), file.Close())
}

// finish makes the names in the folder durable.
func (f *folder) finish() error {
	return filepath.WalkDir(f.path, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		return syncDir(path)
	})
}
