package shardlog

import (
	"context"
	"errors"
	"io"
)

// locate returns the place of the record at index, or one at most about sparseStep before it. It
// scans the part up to there that the sparse index does not cover, and extends the index.
func (s *Store) locate(ctx context.Context, e extent, file *handle, index uint64) (place, error) {
	near, covered := s.sparse.before(e.segment, index)
	if near.index == index || index < covered.index {
		return near, nil
	}
	reached := func(at place) bool { return at.index >= index }
	return s.search(ctx, e, file, covered, true, reached)
}

// locateArrival returns the index of the extent's first record with an arrival of at least ms, or
// fs.ErrNotExist if the file is missing.
func (s *Store) locateArrival(ctx context.Context, e extent, ms int64) (uint64, error) {
	file, err := s.files.hold(e.segment)
	if err != nil {
		return 0, err
	}
	defer s.files.release(file)
	near, covered := s.sparse.beforeArrival(e.segment, ms)
	grow := covered.arrival < ms
	if grow {
		near = covered
	}
	reached := func(at place) bool { return at.arrival >= ms }
	at, err := s.search(ctx, e, file, near, grow, reached)
	return at.index, err
}

// search scans from a place on until reached returns true, and returns that place, or the
// extent's end. With grow, from is the end of the sparse index, and search extends the index.
func (s *Store) search(ctx context.Context, e extent, file *handle, from place, grow bool,
	reached func(at place) bool,
) (place, error) {
	var found []place
	last := int64(-sparseStep)
	arrival := from.arrival
	scan := e.scanner(file, from, e.size-from.offset)
	scan.reuse = true
	for {
		f, err := scan.scan()
		at := place{index: scan.next, offset: scan.off}
		if err == nil { // after damage the frame may lie further on than the scanner did
			at = place{index: f.index, offset: scan.off - int64(f.size)}
		}
		if err == nil && at.offset-last >= sparseStep && ctx.Err() != nil {
			err = ctx.Err()
		}
		at.arrival = f.arrival
		if err != nil || reached(at) {
			if grow {
				s.sparse.extend(e.segment, from, found, place{at.index, at.offset, arrival})
			}
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return at, err
		}
		if at.offset-last >= sparseStep {
			found = append(found, at)
			last = at.offset
		}
		arrival = f.arrival
	}
}
