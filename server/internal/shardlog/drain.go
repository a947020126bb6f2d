package shardlog

import (
	"errors"
	"fmt"
	"io/fs"
)

const (
	drainTurn  = 8 << 20  // bytes of one shard before it is the next one's turn
	drainWrite = 1 << 20  // bytes of small batches that go into one write
	drainLarge = 64 << 10 // a batch from this size on is written from where it is
)

// drain does what a shard has for the drainer: it removes expired segments, which may free
// the space that the rest needs, and writes the tail. more is set if there may be more to do.
// After an error nothing is lost: what was not written is still in the tail.
func (sh *Shard) drain() (more bool, err error) {
	if sh.deleted() {
		sh.discard()
		return false, nil
	}
	sh.expire()
	if sh.store.fatal.Load() != nil {
		return false, nil
	}
	batches, more := sh.undrained()
	for len(batches) > 0 {
		n, err := sh.write(batches)
		if err != nil {
			return false, err
		}
		batches = batches[n:]
	}
	sh.expire()
	return more, nil
}

// undrained returns the next batches to write: one turn's worth.
func (sh *Shard) undrained() (batches []*batch, more bool) {
	sh.pub.Lock()
	defer sh.pub.Unlock()
	size := 0
	for _, b := range sh.pub.tail {
		if size >= drainTurn {
			return batches, true
		}
		size += len(b.frames)
		batches = append(batches, b)
	}
	return batches, false
}

// write writes the first of the batches, as many as fit into one write to one segment, and
// returns how many.
func (sh *Shard) write(batches []*batch) (int, error) {
	s := sh.store
	file, err := sh.activeFile(batches[0].first)
	if err != nil {
		return 0, err
	}
	n, data := s.drain.gather(batches, s.cfg.SegmentSize-sh.active.size)
	if _, err := file.WriteAt(data, sh.active.size); err != nil {
		s.files.release(file)
		return 0, fmt.Errorf("write %s at offset %d: %w", sh.active.path(), sh.active.size, err)
	}
	if !s.dirty.wrote(file, sh.active.size == 0) {
		s.files.release(file)
	}
	sh.written(batches[:n], int64(len(data)))
	return n, nil
}

// activeFile returns the file of the segment that takes the record at index next. It rolls
// the segment if it is full.
func (sh *Shard) activeFile(index uint64) (*handle, error) {
	s := sh.store
	if s.dirty.len() >= s.cfg.OpenFiles {
		if err := s.syncSegments(s.drain.stop); err != nil {
			return nil, err
		}
	}
	if sh.active != nil && sh.active.size > 0 && sh.active.size < s.cfg.SegmentSize {
		return s.files.hold(sh.active)
	}
	if err := sh.touch(); err != nil {
		return nil, err
	}
	if sh.active != nil && sh.active.size == 0 {
		s.files.forget(sh.active) // made before, and then not written
	}
	seg := &segment{shard: sh, first: index, end: index}
	file, err := s.files.create(seg)
	if err != nil {
		return nil, fmt.Errorf("make a segment: %w", err)
	}
	sh.active = seg
	return file, nil
}

// gather returns the bytes of as many batches as fill room, or one write, and their number.
func (d *drainer) gather(batches []*batch, room int64) (int, []byte) {
	if first := batches[0].frames; len(first) >= drainLarge || len(batches) == 1 {
		return 1, first
	}
	if d.buf == nil {
		d.buf = make([]byte, 0, drainWrite+drainLarge)
	}
	data, n := d.buf[:0], 0
	for _, b := range batches {
		if n > 0 && (int64(len(data)) >= room || len(data)+len(b.frames) > cap(data)) {
			break
		}
		data = append(data, b.frames...)
		n++
	}
	return n, data
}

// written publishes that batches are now read from the active segment, and gives their memory
// back.
func (sh *Shard) written(batches []*batch, size int64) {
	s, seg := sh.store, sh.active
	var found []place
	offset := seg.size
	held, bytes := 0, 0
	for _, b := range batches {
		found = appendPlaces(found, b, offset)
		offset += int64(len(b.frames))
		held += b.held
		bytes += len(b.frames)
	}
	last := batches[len(batches)-1]
	from := place{index: batches[0].first, offset: seg.size}
	s.sparse.extend(seg, from, found, place{last.end(), offset, last.arrival})

	sh.pub.Lock()
	if seg.size == 0 {
		seg.firstArrival = batches[0].arrival
		sh.pub.segments = append(sh.pub.segments, seg)
	}
	seg.end, seg.size, seg.lastArrival = last.end(), seg.size+size, last.arrival
	sh.pub.drained, sh.pub.drainedArrival = last.end(), last.arrival
	clear(sh.pub.tail[:len(batches)])
	sh.pub.tail = sh.pub.tail[len(batches):]
	if len(sh.pub.tail) == 0 {
		sh.pub.tail = nil
	}
	sh.pub.Unlock()

	s.bytes.Add(size)
	s.drain.finished(bytes)
	if held > 0 {
		s.log.Release(held)
	}
}

// expire removes the segments that hold nothing but trimmed records, the active one included:
// the next record then begins another.
func (sh *Shard) expire() {
	sh.pub.Lock()
	n := 0
	for n < len(sh.pub.segments) && sh.pub.segments[n].end <= sh.pub.oldest {
		n++
	}
	gone := sh.pub.segments[:n:n]
	if n > 0 {
		sh.pub.segments = append([]*segment(nil), sh.pub.segments[n:]...)
	}
	sh.pub.Unlock()
	for _, seg := range gone {
		if seg == sh.active {
			sh.active = nil
		}
		sh.remove(seg)
	}
}

// discard forgets everything of a shard that is deleted, and removes its files.
func (sh *Shard) discard() {
	s := sh.store
	sh.pub.Lock()
	gone, tail := sh.pub.segments, sh.pub.tail
	sh.pub.segments, sh.pub.tail = nil, nil
	sh.pub.Unlock()
	held, bytes := 0, 0
	for _, b := range tail {
		held += b.held
		bytes += len(b.frames)
	}
	s.drain.finished(bytes)
	if held > 0 {
		s.log.Release(held)
	}
	if sh.active != nil && sh.active.size == 0 {
		gone = append(gone, sh.active) // made, and then not written
	}
	sh.active = nil
	for _, seg := range gone {
		sh.remove(seg)
	}
	s.removeFolder(sh.folder)
}

// remove removes a segment's file. What cannot be removed, or comes back by a crash, goes at
// the next start, as no snapshot names it.
func (sh *Shard) remove(seg *segment) {
	s := sh.store
	s.bytes.Add(-seg.size)
	s.sparse.forget(seg)
	s.dirty.drop(s.files, seg)
	s.files.forget(seg)
	err := s.cfg.FS.Remove(seg.path())
	s.files.forget(seg) // a reader may have opened it meanwhile
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.cfg.Logger.Warn("a segment without use cannot be removed; the next start tries again",
			"file", seg.path(), "error", err)
	}
}
