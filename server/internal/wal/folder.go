package wal

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"

	"github.com/runnel-stream/runnel/internal/vfs"
)

// folder is the log's folder: the lock, FORMAT, the snapshots and the log files. It knows neither
// machines nor pending frames. Its fields do not change after Start, so every goroutine may use it.
type folder struct {
	fs       vfs.FS
	dir      string
	readOnly bool
	salvage  bool
	format   int // the directory's version
	lock     vfs.Lock
}

// take locks the directory, and makes it if it does not exist.
func (d *folder) take() error {
	if d.readOnly {
		return d.look()
	}
	if err := d.fs.MkdirAll(path.Join(d.dir, walDir)); err != nil {
		return err
	}
	lock, err := d.fs.Lock(path.Join(d.dir, "LOCK"))
	if err != nil {
		return err
	}
	if err := d.checkFormat(); err != nil {
		return errors.Join(err, lock.Close())
	}
	d.lock = lock
	return nil
}

// look is take for a read-only log.
func (d *folder) look() error {
	if _, err := d.fs.Stat(d.dir); err != nil {
		return err
	}
	lock, err := d.fs.Lock(path.Join(d.dir, "LOCK"))
	if errors.Is(err, vfs.ErrLocked) {
		return fmt.Errorf("a server or another command uses it, stop that first: %w", err)
	}
	if err != nil {
		return err
	}
	d.format, err = d.readFormat()
	if errors.Is(err, fs.ErrNotExist) {
		err = d.checkNew()
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			err = ErrNoLog
		}
	}
	if d.salvage && errors.Is(err, ErrFormat) && !errors.Is(err, ErrNewerFormat) {
		d.format, err = formatNew, nil // the file is damaged or gone: Rebase writes it
	}
	if err != nil {
		return errors.Join(err, lock.Close())
	}
	d.lock = lock
	return nil
}

func (d *folder) listFiles() (logFiles, error) {
	names, err := d.fs.List(path.Join(d.dir, walDir))
	if err != nil {
		return nil, err
	}
	var files logFiles
	for _, name := range names {
		generation, ok := generationOf(name)
		if !ok {
			continue
		}
		f, err := d.lookAt(generation)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	slices.SortFunc(files, func(a, b foundFile) int {
		return cmp.Compare(a.generation, b.generation)
	})
	return files, nil
}

func (d *folder) lookAt(generation uint64) (foundFile, error) {
	var f foundFile
	file, err := d.fs.Open(fileName(d.dir, generation))
	if err != nil {
		return f, err
	}
	p := make([]byte, blockUsed)
	n := 0
	size, err := file.Size()
	if err == nil {
		if n, err = file.ReadAt(p, 0); errors.Is(err, io.EOF) {
			err = nil
		}
	}
	f.segment, f.begun = decodeBlock(p[:n], generation)
	f.generation, f.size = generation, size
	return f, errors.Join(err, file.Close())
}

func (d *folder) withReader(s segment, from LSN, do func(r *reader) error) error {
	file, err := d.fs.Open(fileName(d.dir, s.generation))
	if err != nil {
		return err
	}
	return errors.Join(do(newReader(file, s, from)), file.Close())
}

// remove removes the log file of a generation.
func (d *folder) remove(generation uint64) error {
	return d.fs.Remove(fileName(d.dir, generation))
}
