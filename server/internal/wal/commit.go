package wal

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"
)

var errStopped = errors.New("the log was closed before this was written")

// commit is the committer's goroutine. Each round commits all frames that arrived during the
// round before.
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
			// The woken waiters run first, so that their next frames join this batch instead of
			// the one after it (64 appenders, 1.5 ms per sync: 43 frames share a sync instead of
			// 32).
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

// commitPending writes one batch of pending frames, syncs it if write requires that, and runs the
// frames' durable functions. some reports whether there were frames; ok is false if the commit
// poisoned the log.
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
	if l.poisoned() { // a sync of the interval syncer has failed
		return true, false
	}
	l.land(batch)
	return true, true
}

// write appends the batch to the file, starting new files as needed. It then syncs, unless the log
// syncs at intervals and no frame of the batch requires a sync.
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

// sealAll completes as many frames of p as fit into the file and returns their total size.
func (l *Log) sealAll(file *logFile, p []byte, at, synced LSN) int {
	room := int(min(file.size-file.off, int64(len(p))))
	n := 0
	for n < room && n+sizeOf(p[n:]) <= room {
		n += l.seal.seal(p[n:], file.generation, at+LSN(n), synced)
	}
	return n
}

// land runs the batch's durable functions and then publishes the batch as durable.
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
	claims{l}.decide()
	due := int64(end-l.mu.asked) >= l.cfg.FileSize
	if due {
		l.mu.asked = end
	}
	l.mu.Unlock()
	l.room.land(end, int64(size))
	nudge(l.watched)
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

// syncWritten makes all written frames durable. The first such sync of a file also covers its
// first block; from then on the files before it may be recycled.
func (l *Log) syncWritten() error {
	l.syncing <- struct{}{}
	defer func() { <-l.syncing }()
	return l.syncFile(false)
}

// syncFile does the work of syncWritten for a caller that holds the syncing token. With force it
// syncs even if no frame needs it. On a failure it poisons the log before it releases the token:
// a later sync might succeed although the data is lost.
func (l *Log) syncFile(force bool) error {
	l.mu.Lock()
	file, to, poison := l.mu.file, l.mu.written, l.mu.poison
	skip := file == nil || file.known && l.mu.synced == to && !force
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

// rotate syncs the file, which ends at end, and begins the next one there. That sync makes the
// next file's first block a durable and exact record of this file's length.
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

// fit lengthens the next file if its first frame is larger than a whole file.
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
	// made keeps its value: the first block may become durable before the new length.
	l.mu.Lock()
	next.size = size
	l.mu.Unlock()
	return l.insist(lengthen(), lengthen)
}

// change writes a note into the old file that next follows at end, syncs it, and begins next.
func (l *Log) change(next *logFile, end LSN) error {
	old := l.current()
	announce := func() error { return old.writeNote(old.File, end, next.generation, false) }
	if err := l.insist(announce(), announce); err != nil {
		return err
	}
	// Take the token only now. While the committer waits for room, a checkpoint needs the token
	// to sync, and that checkpoint may make the room.
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
	l.mu.file, l.mu.coming = next, nil
	l.mu.Unlock()
	if err := old.Close(); err != nil { // synced: no data can be lost
		l.logger.Warn("could not close a log file", "error", err)
	}
	return nil
}

// begin writes the file's first block.
func (f *logFile) begin(start LSN) error {
	f.start, f.off = start, blockSize
	return f.put(encodeBlock(f.segment), 0)
}

// put writes p at an offset. After a failure the caller may repeat it with the same arguments.
func (f *logFile) put(p []byte, off int64) error {
	if _, err := f.WriteAt(p, off); err != nil {
		return fmt.Errorf("write the log file %d: %w", f.generation, err)
	}
	return nil
}

// next waits for the file that the preparer makes in advance.
func (l *Log) next() (*logFile, error) {
	l.starve(true)
	defer l.starve(false)
	select {
	case file := <-l.prepared:
		l.mu.Lock()
		defer l.mu.Unlock()
		l.mu.coming = file
		if l.mu.next == file { // else the preparer has made another meanwhile
			claims{l}.setNext(nil)
		}
		return file, nil
	case <-l.stop:
		return nil, errStopped
	}
}
