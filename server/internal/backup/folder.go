package backup

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
)

// folder is a Target: a folder of the operating system. Put syncs each file, and finish the names.
// Both keep to the folder that was opened, also if another one has its name meanwhile.
type folder struct{ root *os.Root }

// Put implements Target.
func (f *folder) Put(name string, mode fs.FileMode, size int64, r io.Reader) error {
	if err := f.root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	file, err := f.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
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
	return fs.WalkDir(f.root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		return syncDir(filepath.Join(f.root.Name(), filepath.FromSlash(name)))
	})
}
