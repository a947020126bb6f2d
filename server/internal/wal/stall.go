package wal

import (
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/runnel-stream/runnel/internal/vfs"
)

// mayPass reports whether a file could not be made for a reason that can pass: space, quota, a
// limit on the length of files (ulimit -f), or file descriptors. A failed sync never qualifies,
// since the content of the disk is unknown afterwards.
func mayPass(err error) bool {
	if errors.Is(err, errNotDurable) {
		return false
	}
	if errors.As(err, new(*obstructedError)) {
		return true
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

// starve records whether the committer waits for a file.
func (l *Log) starve(on bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stall(func() { l.mu.starving = on })
}

// stall applies a change to the reasons for a stall, and then blocks or admits callers of
// Sequence accordingly. The caller holds mu.
func (l *Log) stall(change func()) {
	was := l.refusal()
	change()
	now := l.refusal()
	if (was != nil || now != nil) && l.mu.poison == nil && l.mu.state == stateRunning {
		l.room.refuse(now)
	}
	if now != nil {
		claims{l}.decide()
	}
}

// stalled returns ErrStalled with its cause while the next file cannot be made and the present one
// is full up to the reserve, or while the committer cannot write to the file that it has. The
// caller holds mu.
func (l *Log) stalled() error {
	cause := l.mu.writeErr
	if cause == nil && (l.mu.starving || l.mu.short) {
		cause = l.mu.fileErr
	}
	if cause == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrStalled, cause)
}

// insist repeats a step of the committer while it fails for a reason that can pass; the log is
// stalled meanwhile. Unlike a failed sync, such a failure need not poison the log: the step
// writes the same bytes to the same place again, and they count only after a later sync has
// succeeded. insist gives up while the log closes.
func (l *Log) insist(err error, step func() error) error {
	if err == nil || !mayPass(err) {
		return err
	}
	l.logger.Warn("could not write to the log; trying again", "error", err)
	defer l.setWriteErr(nil)
	retry := time.NewTicker(prepareRetry)
	defer retry.Stop()
	for {
		l.setWriteErr(err)
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

// setWriteErr records why the committer is blocked; nil clears it.
func (l *Log) setWriteErr(cause error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stall(func() { l.mu.writeErr = cause })
}
