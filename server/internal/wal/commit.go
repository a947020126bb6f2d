package wal

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"
)

var errStopped = errors.New("the log was closed before this was written")

// commit is the committer: it commits what is appended, and what comes meanwhile together.
func (l *Log) commit() {
	idle := time.NewTimer(l.cfg.MarkDelay)
	defer idle.Stop()
	for {
		select {
		case <-l.stop:
			return
		default:
		}
		some, ok := l.commitPending()
		if !ok {
			return
		}
		if some {
			// Those who were woken run first: what they append next goes into this batch and not
			// into the one after it (64 appenders, 1.5 ms to a sync: 43 frames share it instead
			// of 32).
			runtime.Gosched()
			idle.Reset(l.cfg.MarkDelay)
			continue
		}
		select {
		case <-l.kick:
		case <-idle.C:
			if l.mark() {
				idle.Reset(l.cfg.MarkDelay)
			}
		case <-l.stop:
			return
		}
	}
}

// commitPending writes what is pending, up to a batch, syncs it once, and tells. It reports whether
// there was some; if that has poisoned the log it is not ok.
func (l *Log) commitPending() (some, ok bool) {
	l.turn.Lock()
	defer l.turn.Unlock()
	l.mu.Lock()
	batch, synced := l.mu.queue.take(), l.mu.synced
	l.mu.Unlock()
	if len(batch) == 0 { // as in a poisoned log
		return false, true
	}
	if err := l.write(batch, synced); err != nil {
		l.poison(err)
		return true, false
	}
	if l.poisoned() { // at an interval
		return true, false
	}
	l.land(batch)
	return true, true
}

// write puts the batch into the file, and those after it, and syncs unless that is done at
// intervals and no frame asks for more.
func (l *Log) write(batch []*chunk, synced LSN) error {
	beyond := l.beyond(batch)
	for _, c := range batch {
		at, p := c.start, c.buf
		for len(p) > 0 {
			file := l.current()
			n := l.sealAll(file, p, at, synced)
			if n == 0 {
				if err := l.rotate(at, sizeOf(p)); err != nil {
					return err
				}
				synced = at
				continue
			}
			if err := l.put(file, p[:n]); err != nil {
				return err
			}
			file.off += int64(n)
			file.clear(beyond)
			at, p = at+LSN(n), p[n:]
			l.wrote(at)
		}
	}
	strict := slices.ContainsFunc(batch, func(c *chunk) bool { return c.synced })
	if l.cfg.SyncInterval > 0 && !strict {
		nudge(l.dirty)
		return nil
	}
	return l.syncWritten()
}

// put writes frames at the end of the file.
func (l *Log) put(file *logFile, p []byte) error {
	err := file.put(p, file.off)
	if err == nil {
		return nil
	}
	return l.insist(err, func() error { return file.put(p, file.off) })
}

// sealAll completes as many frames of p as fit into the file, and returns their bytes.
func (l *Log) sealAll(file *logFile, p []byte, at, synced LSN) int {
	room := int(min(file.size-file.off, int64(len(p))))
	n := 0
	for n < room && n+sizeOf(p[n:]) <= room {
		n += l.seal.seal(p[n:], file.generation, at+LSN(n), synced)
	}
	return n
}

// land runs the batch's durable functions, then lets everybody see that it is durable.
func (l *Log) land(batch []*chunk) {
	size := 0
	for _, c := range batch {
		for _, call := range c.calls {
			call()
		}
		size += len(c.buf)
	}
	end := batch[len(batch)-1].end()
	l.mu.Lock()
	l.landed.Store(uint64(end))
	l.mu.queue.landed()
	due := int64(end-l.mu.asked) >= l.cfg.FileSize
	if due {
		l.mu.asked = end
	}
	l.mu.Unlock()
	l.room.add(-int64(size))
	if due {
		nudge(l.checkpoint)
	}
}

func (l *Log) current() *logFile {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.file
}

func (l *Log) wrote(to LSN) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.written = to
}

// syncWritten makes durable what is written. Once a file's first block is durable with it, the
// file counts: those before it may be recycled.
func (l *Log) syncWritten() error {
	l.syncing <- struct{}{}
	defer func() { <-l.syncing }()
	return l.syncFile(false)
}

// syncFile is syncWritten for who has the token; with force also if no frame needs it. A failure
// poisons before the token goes on: the next one's sync could succeed, and would prove nothing.
func (l *Log) syncFile(force bool) error {
	l.mu.Lock()
	file, to, poison := l.mu.file, l.mu.written, l.mu.poison
	skip := file.known && l.mu.synced == to && !force
	l.mu.Unlock()
	if poison != nil || skip {
		return poison
	}
	if err := file.Sync(); err != nil {
		l.poison(fmt.Errorf("sync the log file %d: %w", file.generation, err))
		return l.Err()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.synced = to
	if !file.known {
		file.known = true
		l.mu.segments = append(l.mu.segments, file.segment)
	}
	return nil
}

// rotate syncs the file, which ends at end, and begins the next one there. Because of that
// sync, the next one's first block tells exactly, and durably, how far this one reaches.
func (l *Log) rotate(end LSN, need int) error {
	next, err := l.next()
	if err != nil {
		return err
	}
	if err = l.fit(next, need); err == nil {
		err = l.change(next, end)
	}
	if err != nil {
		return errors.Join(err, next.Close())
	}
	return nil
}

// fit lengthens the next file if the frame that it is for is larger than a file.
func (l *Log) fit(next *logFile, need int) error {
	size := int64(blockSize + need)
	if size <= next.size {
		return nil
	}
	lengthen := func() error {
		if err := next.Allocate(size); err != nil {
			return fmt.Errorf("make room for a frame of %d bytes: %w", need, err)
		}
		return nil
	}
	next.size = size // made stays: the first block may be durable before the new length is
	return l.insist(lengthen(), lengthen)
}

// change notes in the file that next goes on at end, syncs it, and begins next.
func (l *Log) change(next *logFile, end LSN) error {
	old := l.current()
	announce := func() error { return old.writeNote(old.File, end, next.generation, false) }
	if err := l.insist(announce(), announce); err != nil {
		return err
	}
	// Not before: who waits for room has no token. A checkpoint syncs too, and may make room.
	l.syncing <- struct{}{}
	defer func() { <-l.syncing }()
	if err := l.syncFile(true); err != nil {
		return err
	}
	begin := func() error { return next.begin(end) }
	if err := l.insist(begin(), begin); err != nil {
		return err
	}
	l.mu.Lock()
	l.mu.file = next
	l.mu.Unlock()
	if err := old.Close(); err != nil { // synced: nothing is lost
		l.logger.Warn("could not close a log file", "error", err)
	}
	return nil
}

// begin writes the first block.
func (f *logFile) begin(start LSN) error {
	f.start, f.off = start, blockSize
	return f.put(encodeBlock(f.segment), 0)
}

// put writes p at an offset. It may be called again after a failure, with the same.
func (f *logFile) put(p []byte, off int64) error {
	if _, err := f.WriteAt(p, off); err != nil {
		return fmt.Errorf("write the log file %d: %w", f.generation, err)
	}
	return nil
}

// next waits for the file that the preparer makes ahead.
func (l *Log) next() (*logFile, error) {
	l.starve(true)
	defer l.starve(false)
	select {
	case file := <-l.prepared:
		return file, nil
	case <-l.stop:
		return nil, errStopped
	}
}
