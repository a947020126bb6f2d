package kinesis

import (
	"errors"
	"sync/atomic"

	"github.com/runnel-stream/runnel/internal/vfs"
)

// failingFS is a file system that fails syncs on request.
type failingFS struct {
	*vfs.Mem
	fail atomic.Bool
}

type failingFile struct {
	vfs.File
	fs *failingFS
}

func (g *failingFS) Create(name string) (vfs.File, error) {
	f, err := g.Mem.Create(name)
	return &failingFile{f, g}, err
}

func (g *failingFS) Open(name string) (vfs.File, error) {
	f, err := g.Mem.Open(name)
	return &failingFile{f, g}, err
}

func (f *failingFile) Sync() error {
	if f.fs.fail.Load() {
		return errors.New("the disk is broken")
	}
	return f.File.Sync()
}
