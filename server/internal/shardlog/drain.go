package shardlog

import (
	"errors"
	"fmt"
	"io/fs"
)

const (
	drainTurn  = 8 << 20  // bytes of one shard per turn
	drainWrite = 1 << 20  // bytes of small batches that go into one write
	drainLarge = 64 << 10 // a batch of at least this size is written from its own memory
)

// drain does the drainer's work for the shard. It first removes expired segments, which may free
// the space that the rest needs, and then writes the tail. more is set if there may be more to
// do. After an error no record is lost: unwritten batches stay in the tail.
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

// write writes as many of the first batches as fit into one write to one segment, and returns
// their number.
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

// begin makes the segment of the first batch that waits, if any, so that its write finds it.
func (sh *Shard) begin() {
	batches, _ := sh.undrained()
	if len(batches) == 0 || sh.deleted() || sh.store.fatal.Load() != nil {
		return
	}
	if file, err := sh.activeFile(batches[0].first); err == nil {
		sh.store.files.release(file)
	}
}

// activeFile returns the file of the segment for the record at index. It begins a new segment if
// the active one is full.
func (sh *Shard) activeFile(index uint64) (*handle, error) {
	s := sh.store
	if s.dirty.len() >= s.cfg.OpenFiles {
		if err := s.syncSegments(s.drain.stop); err != nil {
			return nil, err
		}
	}
	if sh.active.takes(index, s.cfg.SegmentSize) {
		return s.files.hold(sh.active)
	}
	if err := sh.touch(); err != nil {
		return nil, err
	}
	if sh.active != nil && sh.active.size == 0 {
		s.files.forget(sh.active) // made for records that were trimmed before their write
	}
	seg := &segment{shard: sh, first: index, end: index}
	file, err := s.files.create(seg)
	if err != nil {
		return nil, fmt.Errorf("make a segment: %w", err)
	}
	sh.active = seg
	return file, nil
}

// gather returns the bytes of as many batches as fit into room or one write, and their number.
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

// written publishes that the batches are now read from the active segment, and returns their
// memory to the log's budget.
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

// expire removes the segments that hold only trimmed records. This includes the active one: the
// next record then begins another.
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

// discard drops the state of a deleted shard and removes its files.
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
		gone = append(gone, sh.active) // made, but never written
	}
	sh.active = nil
	for _, seg := range gone {
		sh.remove(seg)
	}
	s.removeFolder(sh.folder)
}

// remove removes a segment's file. If that fails, or a crash restores the file, the next start
// removes it, since no snapshot names it.
func (sh *Shard) remove(seg *segment) {
	s := sh.store
	s.bytes.Add(-seg.size)
	s.sparse.forget(seg)
	s.dirty.drop(s.files, seg)
	s.files.forget(seg)
	err := s.cfg.FS.Remove(seg.path())
	s.files.forget(seg) // a reader may have opened it concurrently
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.cfg.Logger.Warn("a segment without use cannot be removed; the next start tries again",
			"file", seg.path(), "error", err)
	}
}
