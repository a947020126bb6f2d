package wal

import (
	"errors"
	"fmt"
	"path"
	"time"

	"github.com/runnel-stream/runnel/internal/vfs"
)

const (
	prepareRetry = time.Second // pause before the next attempt to make a file
	keepSpares   = 2           // the most spare files kept for reuse
)

// errNotDurable marks a failed sync: the content of the disk is unknown afterwards.
var errNotDurable = errors.New("sync failed")

// prepare is the preparer's goroutine. It makes the next log file before the committer needs it.
//
// A file's name holds its generation, and the name is durable before the first write to the file.
// So no generation is used twice, even after a crash: the folder always shows the highest one
// ever used.
func (l *Log) prepare() {
	for {
		file, err := l.makeFile(l.cfg.FileSize)
		switch {
		case err != nil && mayPass(err):
			if !l.waitForRoom(err) {
				return
			}
			continue
		case err != nil:
			l.poison(err)
			return
		}
		l.setFileErr(nil)
		l.mu.Lock()
		claims{l}.setNext(file)
		l.mu.Unlock()
		select {
		case l.prepared <- file:
		case <-l.stop:
			if err := file.Close(); err != nil {
				l.logger.Warn("could not close a log file", "error", err)
			}
			return
		}
	}
}

// waitForRoom records that the next file cannot be made, and waits until a retry makes sense. A
// full disk does not poison the log: nothing was written, and frames keep their place. While the
// log closes, waitForRoom does not wait.
func (l *Log) waitForRoom(cause error) bool {
	if l.setFileErr(cause) {
		l.poison(cause)
		return false
	}
	timer := time.NewTimer(prepareRetry)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-l.recycled:
	case <-l.stop:
		return false
	}
	return true
}

// setFileErr records why there is no next file. It returns true if the preparer should give up.
func (l *Log) setFileErr(cause error) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if cause != nil && l.mu.fileErr == nil {
		l.logger.Warn("could not make the next log file; trying again", "error", cause)
	}
	l.stall(func() { l.mu.fileErr, l.mu.short = cause, l.mu.short && cause != nil })
	claims{l}.decide()
	return cause != nil && l.mu.starving && l.mu.state == stateClosing
}

// makeFile makes the file of the next generation, of size bytes, from a spare if there is one. An
// obstructed log makes no whole file, which it does not need: the machine may wait for that space.
func (l *Log) makeFile(size int64) (*logFile, error) {
	l.mu.Lock()
	generation := l.mu.fresh
	var spare uint64
	if n := len(l.mu.spares); n > 0 {
		spare = l.mu.spares[n-1]
		l.mu.spares = l.mu.spares[:n-1]
	}
	obstacle := l.mu.obstacle
	l.mu.Unlock()
	if obstacle != nil && spare == 0 && size == l.cfg.FileSize {
		return nil, &obstructedError{obstacle}
	}
	name := fileName(l.cfg.Dir, generation)
	var file vfs.File
	var err error
	if spare != 0 {
		// a spare that cannot be reused is left for the next start
		file, err = l.folder.reuse(spare, name)
	} else {
		file, err = l.folder.create(name, size)
	}
	if err == nil {
		err = durably(l.folder.fs.SyncDir(path.Join(l.cfg.Dir, walDir)))
	}
	if err != nil {
		if file != nil {
			err = errors.Join(err, file.Close())
		}
		return nil, fmt.Errorf("make the log file %d: %w", generation, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.fresh = generation + 1
	var ready int64
	if spare >= l.mu.first { // filled by this life
		ready = l.cfg.FileSize
	}
	return &logFile{
		segment: segment{
			generation: generation, size: size, made: size, acks: l.acks(),
		},
		File:  file,
		ready: ready,
	}, nil
}

// reuse gives a spare file its new name. Its old frames have another generation. It syncs the
// file first: if the start found this spare, the life that made it may have ended before the
// sync, and a power loss could then leave it shorter than its first block will say.
func (d *folder) reuse(spare uint64, name string) (vfs.File, error) {
	old := fileName(d.dir, spare)
	file, err := d.fs.Open(old)
	if err != nil {
		return nil, err
	}
	if err := durably(file.Sync()); err != nil { // a second sync could report a false success
		return nil, errors.Join(err, file.Close(), d.fs.Remove(old))
	}
	if err := d.fs.Rename(old, name); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

func (d *folder) create(name string, size int64) (vfs.File, error) {
	file, err := d.fs.Create(name)
	if err != nil {
		return nil, err
	}
	if err = file.Allocate(size); err == nil {
		err = durably(file.Sync())
	}
	if err != nil { // an unfinished file would only occupy space
		return nil, errors.Join(err, file.Close(), d.fs.Remove(name))
	}
	return file, nil
}

func durably(err error) error {
	if err != nil {
		return fmt.Errorf("%w: %w", errNotDurable, err)
	}
	return nil
}
