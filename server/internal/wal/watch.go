package wal

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/runnel-stream/runnel/internal/vfs"
)

// watchEvery is the pause between two looks at the directory.
const watchEvery = time.Second

// ErrGone is wrapped by the cause of a *PoisonedError if the directory was removed, renamed or
// replaced while the log used it.
var ErrGone = vfs.ErrGone

// Check poisons the log if its directory is gone, and returns Err. A log in use looks by itself
// within a second of a write; an idle one does not.
func (l *Log) Check() error {
	w := watcher{l}
	w.look()
	return l.Err()
}

// watcher looks whether the names of the directory still lead to the log's files. Files that are
// open stay writable when their names are removed: without a look, a log would acknowledge frames
// for ever that no start can find.
type watcher struct{ log *Log }

// run is the watcher's goroutine. It looks when frames were written, but once a second at most.
func (w watcher) run() {
	pause := time.NewTimer(watchEvery)
	defer pause.Stop()
	for {
		select {
		case <-w.log.watched:
		case <-w.log.stop:
			return
		}
		w.look()
		pause.Reset(watchEvery)
		select {
		case <-pause.C:
		case <-w.log.stop:
			return
		}
	}
}

func (w watcher) look() {
	w.log.mu.Lock()
	running := w.log.mu.state == stateRunning && w.log.mu.poison == nil
	w.log.mu.Unlock()
	if !running || w.log.cfg.Inline { // a file system in memory belongs to this process
		return
	}
	if err := w.gone(); errors.Is(err, ErrGone) {
		w.log.poison(err)
	}
}

// gone returns ErrGone if the names of the directory, or of the log file that is written, do not
// lead there any more. Other errors are no reason to stop.
func (w watcher) gone() error {
	if err := w.log.folder.lock.Check(); err != nil {
		return err
	}
	file := w.log.current()
	if file == nil {
		return nil
	}
	name := fileName(w.log.cfg.Dir, file.generation)
	_, err := w.log.folder.fs.Stat(name)
	if errors.Is(err, fs.ErrNotExist) && w.log.current() == file { // no recycling explains it
		return fmt.Errorf("%w: there is no %s", ErrGone, name)
	}
	return nil
}
