package shardlog

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
)

const (
	maxReadChunk = 1 << 20 // bytes read from a segment at a time
	minReadChunk = 16 << 10
)

// scanner reads the frames of a segment in order, in chunks.
type scanner struct {
	file  io.ReaderAt
	name  string
	seed  uint32
	off   int64   // of the next frame
	next  uint64  // its record's index
	limit int64   // where the frames end
	end   uint64  // the index after the last of them
	want  int64   // about the number of bytes that the caller will take in all
	reuse bool    // overwrite the buffer: earlier frames become invalid
	lent  *Chunks // lends the buffers, without reuse; may be nil
	// times are those of the segment's first and last record, in [first, end); end 0: unknown.
	times segmentTimes
	// From record small on, frames of more than most bytes are not read: a *largeError. most 0: all
	// are read.
	small uint64
	most  int
	// behind returns the place of the first whole frame behind a damaged one; nil: damage is an
	// error.
	behind func(at place, corrupt *CorruptError) (place, error)

	buf  []byte // read but not yet returned: the bytes at off
	room []byte // the whole buffer, for reuse

	short bool // the file is shorter than it should be
}

// segmentTimes are the arrivals of a segment's first and last record, of [first, end). A file with
// other times is of another data directory. Its frames verify: their checksums cover the id of the
// shard, and no directory.
type segmentTimes struct {
	first, end                uint64
	firstArrival, lastArrival int64
}

var errForeign = errors.New("its time is not one of this segment's: the file may be of another " +
	"data directory")

func (t *segmentTimes) check(f frame) error {
	switch {
	case t.end == 0: // unknown
	case f.arrival < t.firstArrival, f.arrival > t.lastArrival,
		f.index == t.first && f.arrival != t.firstArrival,
		f.index+1 == t.end && f.arrival != t.lastArrival:
		return errForeign
	}
	return nil
}

// largeError is a frame that is not read: see scanner.most.
type largeError struct{ size int }

func (e *largeError) Error() string { return fmt.Sprintf("a frame of %d bytes", e.size) }

// scan returns the next frame, io.EOF after the last one, a *CorruptError, or the error of
// reading. After an error the scanner has not moved. Unless reuse is set, a frame's slices stay
// valid.
func (s *scanner) scan() (frame, error) {
	for {
		f, err := s.frame()
		if err == nil || s.behind == nil {
			return f, err
		}
		if err := s.skip(err); err != nil {
			return frame{}, err
		}
	}
}

// skip moves behind the damage that the error reports. It returns any other error.
func (s *scanner) skip(err error) error {
	var corrupt *CorruptError
	if !errors.As(err, &corrupt) {
		return err
	}
	to, err := s.behind(place{index: s.next, offset: s.off}, corrupt)
	if err == nil {
		s.off, s.next, s.buf, s.short = to.offset, to.index, nil, false
	}
	return err
}

// frame is scan without going on behind damage.
func (s *scanner) frame() (frame, error) {
	if s.off == s.limit && s.next == s.end {
		return frame{}, io.EOF
	}
	if s.off >= s.limit || s.next >= s.end {
		return frame{}, s.corrupt(fmt.Errorf("the segment ends with record %d at offset %d",
			s.end-1, s.limit))
	}
	f, err := parseFrame(s.buf, s.seed, s.next)
	if errors.Is(err, errShort) {
		if err := s.fill(); err != nil { // as a *largeError
			return frame{}, err
		}
		f, err = parseFrame(s.buf, s.seed, s.next)
	}
	if errors.Is(err, errShort) && s.short {
		err = fmt.Errorf("the file ends at offset %d, not %d", s.off+int64(len(s.buf)), s.limit)
	}
	if err == nil {
		err = s.times.check(f)
	}
	if err != nil {
		return frame{}, s.corrupt(err)
	}
	s.buf = s.buf[f.size:]
	s.off += int64(f.size)
	s.next++
	return f, nil
}

// fill reads at least the whole next frame, if the segment is long enough.
func (s *scanner) fill() error {
	onlySmall := s.most > 0 && s.next >= s.small
	want := max(minReadChunk, min(s.want, maxReadChunk))
	if onlySmall {
		want = minReadChunk
	}
	if err := s.read(int(want)); err != nil {
		return err
	}
	length, err := frameLength(s.buf)
	switch {
	case err != nil || length <= len(s.buf):
		return nil //nolint:nilerr // parseFrame reports the fault
	case onlySmall && length > s.most && s.off+int64(length) <= s.limit:
		return &largeError{length}
	}
	return s.read(length)
}

func (s *scanner) read(want int) error {
	size := int(min(int64(want), s.limit-s.off))
	if s.reuse && cap(s.room) >= size {
		s.buf = s.room[:size]
	} else {
		s.buf = s.lent.get(size)
		s.room = s.buf
	}
	s.want -= int64(size)
	n, err := s.file.ReadAt(s.buf, s.off)
	if n == size {
		return nil
	}
	s.buf = s.buf[:n]
	if err == nil || errors.Is(err, io.EOF) {
		s.short = true // the frames before the file's end are good
		return nil
	}
	return fmt.Errorf("read %s at offset %d: %w", s.name, s.off, err)
}

func (s *scanner) corrupt(reason error) error {
	return &CorruptError{
		File: s.name, Offset: s.off, Index: s.next, Next: s.end, Reason: reason.Error(),
		foreign: errors.Is(reason, errForeign),
	}
}

// missing turns the error of opening a required segment into a CorruptError.
func (e extent) missing(err error) error {
	if !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("open a segment: %w", err)
	}
	return &CorruptError{
		File: e.path(), Index: e.first, Next: e.end, Reason: "the file is missing",
	}
}
