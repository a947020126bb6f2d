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
// therefore block the deletions behind it. So claim counts each frame against the files that are
// there before it is sequenced. Ordinary ones that would reach into the reserve wait while the next
// file is being made, since the disk may turn out to be full, and are refused if it is.

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

// claims are the claims of callers on a log's files. They count while no next file is ready, and
// while many bytes are queued, which may need more than that one.
type claims struct{ log *Log }

// crowdShare is the queued bytes' share of a log file from which on claims count. Frames that have
// claimed nothing take at most half of the reserve so.
const crowdShare = 2 * reserveShare

// admit waits until size bytes have room, and claims space for them while that is scarce. The
// caller ends the claim with unclaim.
func (c claims) admit(ctx context.Context, size int64, as purpose) (claimed bool, err error) {
	frees := as == freeing
	err = c.log.room.take(ctx, size, as == paced)
	if frees && (errors.Is(err, ErrStalled) || errors.As(err, new(*obstructedError))) {
		c.log.room.add(size, size)
		err = nil
	}
	crowded := c.log.room.queued.Load() > c.log.cfg.FileSize/crowdShare
	if err != nil || c.log.ready.Load() && !crowded {
		return false, err
	}
	if claimed, err = c.claim(ctx, size, frees); err != nil {
		c.log.room.add(-size, -size)
	}
	return claimed, err
}

// claim counts a frame of size bytes against the log's files. With frees the frame may use the
// reserve.
func (c claims) claim(ctx context.Context, size int64, frees bool) (claimed bool, err error) {
	for {
		claimed, verdict, err := c.try(size, frees)
		if verdict == nil {
			return claimed, err
		}
		select {
		case <-verdict:
		case <-c.log.closing:
			return false, ErrClosed
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
}

// try is one attempt to claim. verdict is not nil if the claim must wait for a further file, or for
// the frames before it.
func (c claims) try(size int64, frees bool) (claimed bool, verdict <-chan struct{}, err error) {
	l := c.log
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.poison != nil || l.mu.state != stateRunning { // run returns the error
		return false, nil, nil
	}
	if err := l.refusal(); err != nil && !frees {
		return false, nil, err
	}
	size += frameHeader + frameAlign // at most: size is that of the frame or its payload
	left, reserve := c.left(), l.cfg.FileSize/reserveShare
	alone := l.mu.claims == 0 && l.mu.queue.end == LSN(l.landed.Load())
	switch {
	case frees && size <= left, !frees && size <= left-reserve:
		l.mu.claims += size
		return true, nil, nil
	case l.mu.next != nil && alone: // it is larger than a file, which the committer lengthens
		return false, nil, nil
	case l.mu.fileErr == nil:
		if l.mu.verdict == nil {
			l.mu.verdict = make(chan struct{})
		}
		return false, l.mu.verdict, nil
	case !frees:
		l.stall(func() { l.mu.short = true })
	}
	return false, nil, fmt.Errorf("%w: %w", ErrStalled, l.mu.fileErr)
}

// left returns the bytes of the files that no frame needs. Of each further file it leaves as much
// as the reserve out, since a file's last frame may end before the file does. The caller holds mu.
func (c claims) left() int64 {
	left := -c.log.mu.claims
	if file := c.log.mu.file; file != nil {
		left += file.size - blockSize - int64(c.log.mu.queue.end-file.start)
	}
	for _, file := range []*logFile{c.log.mu.coming, c.log.mu.next} {
		if file != nil {
			left += file.size - blockSize - c.log.cfg.FileSize/reserveShare
		}
	}
	return left
}

// decide wakes the callers of claim. The caller holds mu.
func (c claims) decide() {
	if c.log.mu.verdict != nil {
		close(c.log.mu.verdict)
		c.log.mu.verdict = nil
	}
}

// setNext sets the file that is ready for the committer. The caller holds mu.
func (c claims) setNext(file *logFile) {
	c.log.mu.next = file
	c.log.ready.Store(file != nil)
	c.decide()
}

func (c claims) unclaim(size int64) {
	c.log.mu.Lock()
	defer c.log.mu.Unlock()
	c.log.mu.claims -= size + frameHeader + frameAlign
	c.decide()
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
