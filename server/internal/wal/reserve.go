package wal

import (
	"context"
	"errors"
	"fmt"
)

// reserveShare is the reserve's share of a log file: one part in so many.
const reserveShare = 8

// The log file that is being written ends with a reserve. While the next file cannot be made, or
// Obstruct blocks the log, only changes that free space are written: without the reserve a full
// disk could be emptied from outside alone, since a deletion is a frame too. The reserve is part
// of a file that is allocated already, so it costs no space.
//
// Every frame keeps its place in the order of the log. A frame that waits for the next file would
// therefore block the deletions behind it. So claim counts each frame against the rest of the
// file before it is sequenced, and refuses ordinary ones that would reach into the reserve.

// SequenceFreeing is Sequence for a change that frees space: a deletion or a trim. It works while
// the log is stalled, as long as the frame fits into the reserve, and while the log is obstructed.
// The log then checkpoints soon.
func (l *Log) SequenceFreeing(ctx context.Context, size int, fn func(tx *Tx)) error {
	err := sequence(ctx, l, size, freeing, fn)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil && l.refusal() != nil {
		nudge(l.freed)
	}
	return err
}

// Obstruct makes the log refuse ordinary frames with cause, which must be known to callers; nil
// admits them again. A machine calls it while it cannot write its data elsewhere: no checkpoint is
// possible then, and frames would only use up the log's files.
func (l *Log) Obstruct(cause error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stall(func() { l.mu.obstacle = cause })
	if cause == nil {
		nudge(l.recycled)
	}
}

// refusal returns what ordinary callers of Sequence get although the log is not broken; nil if it
// takes their frames. The caller holds mu.
func (l *Log) refusal() error {
	if err := l.stalled(); err != nil {
		return err
	}
	if l.mu.obstacle != nil {
		return &obstructedError{l.mu.obstacle}
	}
	return nil
}

// obstructedError marks the refusals of an obstructed log.
type obstructedError struct{ cause error }

func (e *obstructedError) Error() string { return e.cause.Error() }

func (e *obstructedError) Unwrap() error { return e.cause }

// claims are the claims of callers on a log's file, which count while there is no next one.
type claims struct{ log *Log }

// admit waits until size bytes have room, and claims space for them while that is scarce. The
// caller ends the claim with unclaim.
func (c claims) admit(ctx context.Context, size int64, as purpose) (claimed bool, err error) {
	frees := as == freeing
	err = c.log.room.take(ctx, size, as == paced)
	if frees && (errors.Is(err, ErrStalled) || errors.As(err, new(*obstructedError))) {
		c.log.room.add(size, size)
		err = nil
	}
	if err != nil || !c.log.tight.Load() {
		return false, err
	}
	if claimed, err = c.claim(size, frees); err != nil {
		c.log.room.add(-size, -size)
	}
	return claimed, err
}

// claim counts a frame of size bytes against the rest of the file if there is no next one. With
// frees the frame may use the reserve.
func (c claims) claim(size int64, frees bool) (claimed bool, err error) {
	c.log.mu.Lock()
	defer c.log.mu.Unlock()
	if c.log.mu.fileErr == nil {
		return false, nil
	}
	size += frameHeader + frameAlign // at most: size is that of the frame or its payload
	left := -c.log.mu.claims
	if file := c.log.mu.file; file != nil {
		left += file.size - blockSize - int64(c.log.mu.queue.end-file.start)
	}
	switch {
	case frees && size <= left, !frees && size <= left-c.log.cfg.FileSize/reserveShare:
		c.log.mu.claims += size
		return true, nil
	case !frees:
		c.log.stall(func() { c.log.mu.short = true })
	}
	return false, fmt.Errorf("%w: %w", ErrStalled, c.log.mu.fileErr)
}

func (c claims) unclaim(size int64) {
	c.log.mu.Lock()
	defer c.log.mu.Unlock()
	c.log.mu.claims -= size + frameHeader + frameAlign
}

// dropSpares removes the spare files, to make room for a snapshot: a durable snapshot frees more
// log files than that. It returns false if there were none.
func (l *Log) dropSpares() bool {
	l.mu.Lock()
	spares := l.mu.spares
	l.mu.spares = nil
	l.mu.Unlock()
	for _, generation := range spares {
		if err := l.folder.remove(generation); err != nil {
			l.logger.Warn("could not remove a log file; the next start does", "error", err)
		}
	}
	return len(spares) > 0
}
