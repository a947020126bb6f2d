package wal

import (
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/runnel-stream/runnel/internal/vfs"
)

// mayPass reports whether a file could not be made for want of something that can come back:
// space, quota, a limit on the length of files (ulimit -f), or file descriptors. After a failed
// sync nobody knows what the disk holds.
func mayPass(err error) bool {
	if errors.Is(err, errNotDurable) {
		return false
	}
	for _, want := range []error{
		vfs.ErrNoSpace, syscall.EDQUOT, syscall.EFBIG, syscall.EMFILE, syscall.ENFILE,
	} {
		if errors.Is(err, want) {
			return true
		}
	}
	return false
}

// starve says whether the committer waits for a file.
func (l *Log) starve(on bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stall(func() { l.mu.starving = on })
}

// stall changes why the committer waits, and opens or shuts the door to Sequence accordingly.
// Under mu.
func (l *Log) stall(change func()) {
	was := l.stalled()
	change()
	now := l.stalled()
	if (was != nil || now != nil) && l.mu.poison == nil && l.mu.state == stateRunning {
		l.room.refuse(now)
	}
}

// stalled returns ErrStalled, and the cause, while the committer waits and no file can be had,
// or the one that it has takes nothing. Under mu.
func (l *Log) stalled() error {
	cause := l.mu.cramped
	if cause == nil && l.mu.starving {
		cause = l.mu.short
	}
	if cause == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrStalled, cause)
}

// insist repeats a step of the committer that has ended with err, for as long as it fails for
// want of something that can come back, and the log is stalled meanwhile. That is no reason to
// poison, as a failed sync is: the step writes the same bytes to the same place again, and they
// count when a sync has succeeded after that. While the log closes it gives up.
func (l *Log) insist(err error, step func() error) error {
	if err == nil || !mayPass(err) {
		return err
	}
	l.logger.Warn("could not write to the log; trying again", "error", err)
	defer l.cramp(nil)
	retry := time.NewTicker(prepareRetry)
	defer retry.Stop()
	for {
		l.cramp(err)
		select {
		case <-retry.C:
		case <-l.closing:
			return step()
		}
		if l.poisoned() {
			return l.Err()
		}
		if err = step(); err == nil || !mayPass(err) {
			return err
		}
	}
}

// cramp says why the committer cannot write; nil: it can.
func (l *Log) cramp(cause error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stall(func() { l.mu.cramped = cause })
}
