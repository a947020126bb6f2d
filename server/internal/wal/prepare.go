package wal

import (
	"errors"
	"fmt"
	"path"
	"time"

	"github.com/runnel-stream/runnel/internal/vfs"
)

const (
	prepareRetry = time.Second // between two attempts to make a file
	keepSpares   = 2           // files that wait to be used again
)

// errNotDurable marks a failed sync, after which nobody knows what the disk holds.
var errNotDurable = errors.New("sync failed")

// prepare is the preparer: it makes the next log file before the committer needs it.
//
// The file gets its generation by its name, and that name is durable before anything is
// written under it. So no generation is given twice, whatever a crash undoes: the highest one
// ever used is always to be seen in the folder.
func (l *Log) prepare() {
	for {
		file, err := l.makeFile()
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
		l.short(nil)
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

// waitForRoom tells that the next file cannot be made, and waits until it is worth a try. A
// full disk is no reason to poison: nothing was written, and frames keep their place. But
// while the log closes, there is nobody to wait for.
func (l *Log) waitForRoom(cause error) bool {
	if l.short(cause) {
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

// short records why there is no next file, and reports whether to give up.
func (l *Log) short(cause error) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if cause != nil && l.mu.short == nil {
		l.logger.Warn("could not make the next log file; trying again", "error", cause)
	}
	l.stall(func() { l.mu.short = cause })
	return cause != nil && l.mu.starving && l.mu.state == stateClosing
}

// makeFile makes the file of the next generation, of a spare if there is one.
func (l *Log) makeFile() (*logFile, error) {
	l.mu.Lock()
	generation := l.mu.fresh
	var spare uint64
	if n := len(l.mu.spares); n > 0 {
		spare = l.mu.spares[n-1]
		l.mu.spares = l.mu.spares[:n-1]
	}
	l.mu.Unlock()
	name := fileName(l.cfg.Dir, generation)
	var file vfs.File
	var err error
	if spare != 0 {
		file, err = l.reuse(spare, name) // one that cannot be had is left for the next start
	} else {
		file, err = l.create(name)
	}
	if err == nil {
		err = durably(l.fs.SyncDir(path.Join(l.cfg.Dir, walDir)))
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
	if spare >= l.mu.first { // this life has filled it
		ready = l.cfg.FileSize
	}
	return &logFile{
		segment: segment{
			generation: generation, size: l.cfg.FileSize, made: l.cfg.FileSize, acks: l.acks(),
		},
		File:  file,
		ready: ready,
	}, nil
}

// reuse gives a spare file the new name. Its old frames are of another generation. It is synced
// before: one that a start has found may have been made by a life that ended before the sync, and
// a power loss would leave it shorter than its first block is going to say.
func (l *Log) reuse(spare uint64, name string) (vfs.File, error) {
	old := fileName(l.cfg.Dir, spare)
	file, err := l.fs.Open(old)
	if err != nil {
		return nil, err
	}
	if err := durably(file.Sync()); err != nil { // a second sync would say that all is well
		return nil, errors.Join(err, file.Close(), l.fs.Remove(old))
	}
	if err := l.fs.Rename(old, name); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

func (l *Log) create(name string) (vfs.File, error) {
	file, err := l.fs.Create(name)
	if err != nil {
		return nil, err
	}
	if err = file.Allocate(l.cfg.FileSize); err == nil {
		err = durably(file.Sync())
	}
	if err != nil { // an unfinished file would only take room
		return nil, errors.Join(err, file.Close(), l.fs.Remove(name))
	}
	return file, nil
}

func durably(err error) error {
	if err != nil {
		return fmt.Errorf("%w: %w", errNotDurable, err)
	}
	return nil
}
