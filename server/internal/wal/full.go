package wal

import (
	"errors"
	"fmt"
	"time"
)

// A start on a full disk takes no space from it. If the life before wrote nothing, its file is used
// again, as on any disk. Otherwise the start cuts the unused tail off that file and makes its own
// file in that room: it cannot write into the tail itself, since a generation is used once (see
// doc.go). Such a file is small and takes only changes that free space. Ten starts in a row
// therefore need no more room than one.

// takeTail makes a log file without taking more space. cause is why there is no room for a whole
// file.
func (s *starter) takeTail(cause error) (*logFile, error) {
	size, err := s.untake(0)
	if err == nil && size == 0 {
		size, err = s.cutTail()
	}
	if err != nil {
		return nil, errors.Join(cause, err)
	}
	// The segments' writer may be faster: what it takes is not lost, and the rest may suffice.
	for ; size >= minFileSize; size = size / 2 / blockSize * blockSize {
		file, err := s.log.makeFile(size)
		if err == nil {
			s.log.setFileErr(cause)
			s.log.mu.Lock()
			s.log.stall(func() { s.log.mu.short = true })
			s.log.mu.Unlock()
			return file, nil
		}
		if !mayPass(err) {
			return nil, err
		}
	}
	return nil, cause
}

// untake makes the newest file a spare if it is begun and holds no frame, and returns its size.
// With want above 0 it takes only a file of that size. The file before it becomes the newest: its
// note must not announce a file that is about to lose its name. A life that may have lost frames is
// not forgotten so.
func (s *starter) untake(want int64) (size int64, err error) {
	s.log.mu.Lock()
	n := len(s.log.mu.segments)
	usable := n >= 2 && s.log.mu.segments[n-1].generation == s.last.generation &&
		s.last.end == s.last.start && !s.last.lossy && s.log.mu.segments[n-2].acks != acksUnknown
	usable = usable && (want == 0 || s.log.mu.segments[n-1].size == want)
	s.log.mu.Unlock()
	if !usable {
		return 0, nil
	}
	empty, before := s.log.mu.segments[n-1], tail{segment: s.log.mu.segments[n-2], end: s.last.end}
	if err := s.log.folder.announce(before, 0); err != nil {
		return 0, err
	}
	s.last = before
	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	s.log.mu.segments = s.log.mu.segments[:n-1]
	s.log.mu.spares = append(s.log.mu.spares, empty.generation)
	return empty.size, nil
}

// cutTail cuts the newest file behind its frames and returns the bytes that it frees, less than
// minFileSize if there are too few.
func (s *starter) cutTail() (freed int64, err error) {
	keep := max(minFileSize, blockSize+int64(s.last.end-s.last.start))
	keep = (keep + blockSize - 1) / blockSize * blockSize
	freed = s.last.size - keep
	if s.last.generation == 0 || freed < minFileSize {
		return 0, nil
	}
	if err := s.log.folder.shorten(s.last.segment, keep); err != nil {
		return 0, err
	}
	s.last.size = keep
	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	for i := range s.log.mu.segments {
		if seg := &s.log.mu.segments[i]; seg.generation == s.last.generation {
			seg.size = keep // no spare later
			if seg.made != 0 {
				seg.made = keep
			}
			s.last.segment = *seg
		}
	}
	return freed, nil
}

// shorten cuts a durable log file behind its frames. The file's first block must have the new
// length first, since a shorter file counts as damaged.
func (d *folder) shorten(s segment, size int64) error {
	file, err := d.fs.Open(fileName(d.dir, s.generation))
	if err != nil {
		return err
	}
	if s.made != 0 {
		s.made = size
	}
	_, used := s.version()
	if _, err = file.WriteAt(encodeBlock(s)[:used], 0); err == nil {
		err = durably(file.Sync())
	}
	if err == nil {
		err = file.Truncate(size)
	}
	if err == nil {
		err = durably(file.Sync())
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("shorten the log file %d: %w", s.generation, err)
	}
	return nil
}

// readOnly lets the log begin without a file.
func (s *starter) readOnly(cause error) {
	s.log.logger.Warn("the disk has no room for a log file: the log is read-only, and takes "+
		"writes once there is room", "need", s.log.cfg.FileSize, "error", cause)
	s.log.starve(true)
	s.log.setFileErr(fmt.Errorf("read-only since the start: %w", cause))
}

// openLater makes the file of a read-only log once there is room, and then does the committer's
// work.
func (s *starter) openLater() {
	retry := time.NewTicker(prepareRetry)
	defer retry.Stop()
	for {
		select {
		case <-retry.C:
		case <-s.log.recycled:
		case <-s.log.stop:
			return
		}
		err := s.open()
		switch {
		case err == nil:
			s.log.logger.Info("the disk has room again: the log takes writes")
			s.log.starve(false)
			s.log.group.Go(s.log.prepare)
			s.log.commit()
			return
		case !mayPass(err):
			s.log.poison(err)
			return
		}
	}
}
