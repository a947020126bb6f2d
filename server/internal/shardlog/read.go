package shardlog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"sort"
)

// Read returns visible records from index from on, or from the oldest if that one was trimmed. It
// returns at most maxRecords, and at most maxBytes of data and keys, but at least one record if
// there is one and maxRecords is above 0. It may return fewer records than are visible; it
// returns none only if there is none.
//
// Errors, with no records: ctx's, ErrDeleted, ErrClosed, a *CorruptError if the first record
// itself is damaged or missing, or the file system's.
func (sh *Shard) Read(ctx context.Context, from uint64, maxRecords, maxBytes int,
) ([]Record, error) {
	records, _, err := sh.ReadLent(ctx, nil, from, maxRecords, maxBytes)
	return records, err
}

// ReadLent is Read with lent memory: the records' data is valid until that memory is released. It
// also returns the index from which the next read goes on. That index is beyond the last record,
// or beyond from without any, if lost records follow.
func (sh *Shard) ReadLent(
	ctx context.Context, lent *Chunks, from uint64, maxRecords, maxBytes int,
) (records []Record, next uint64, err error) {
	got := collector{
		lent: lent, maxRecords: maxRecords, maxBytes: maxBytes, skips: sh.skipping(),
	}
	next, err = sh.collect(ctx, from, &got)
	return got.finish(), next, err
}

// ReadSmall is ReadLent for a caller without memory for a large record. If the first record has
// more than maxBytes, it returns no record but that one's size, and does not read its data.
func (sh *Shard) ReadSmall(
	ctx context.Context, lent *Chunks, from uint64, maxRecords, maxBytes int,
) (records []Record, next uint64, larger int, err error) {
	got := collector{
		lent: lent, maxRecords: maxRecords, maxBytes: maxBytes, skips: sh.skipping(), small: true,
	}
	next, err = sh.collect(ctx, from, &got)
	return got.finish(), next, got.larger, err
}

// collect fills got with records from index from on, and returns the index to go on from. After an
// error got has none.
func (sh *Shard) collect(ctx context.Context, from uint64, got *collector) (uint64, error) {
	for !got.full() {
		more, err := sh.readPiece(ctx, max(from, got.next), got)
		if err != nil && len(got.records) == 0 {
			return from, fmt.Errorf("read shard %d from record %d: %w", sh.id, from, err)
		}
		if err != nil || !more { // the records so far are good: the next call meets the error
			break
		}
	}
	return max(from, got.next), nil //nolint:nilerr // see above
}

// readPiece adds the records of one segment, or of the tail, to got. more is false if no further
// record is available to this read.
func (sh *Shard) readPiece(ctx context.Context, from uint64, got *collector,
) (more bool, err error) {
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	e, tail, from, err := sh.view(from, got)
	switch {
	case err != nil:
		return false, err
	case len(got.records) > 0 && from != got.next:
		return false, nil // trimmed during the read, or lost: the next read goes on behind it
	}
	got.next = from
	switch {
	case tail != nil:
		for _, b := range tail {
			if !got.addBatch(b.after(from)) {
				break
			}
		}
		return false, nil
	case e.segment == nil:
		return false, nil
	}
	err = sh.store.readSegment(ctx, e, from, got)
	if errors.Is(err, fs.ErrNotExist) {
		if oldest, _ := sh.Bounds(); oldest > from {
			return true, nil // trimmed meanwhile: try again, from the oldest
		}
		if err = e.missing(err); sh.store.passes(err, e, place{index: from}) {
			got.next, err = e.end, nil
		}
	}
	return err == nil, err
}

// view locates the record at from, or the first one after it if that one was trimmed or lost. The
// record is in a segment, in the tail (then view returns as many batches as got can take), or not
// visible yet.
func (sh *Shard) view(from uint64, got *collector) (extent, []*batch, uint64, error) {
	sh.pub.Lock()
	defer sh.pub.Unlock()
	switch {
	case sh.pub.deleted:
		return extent{}, nil, from, ErrDeleted
	case sh.pub.closed:
		return extent{}, nil, from, ErrClosed
	}
	from = max(from, sh.pub.oldest)
	if from < sh.pub.drained {
		if e, ok := sh.extentAtLocked(from); ok {
			return e, nil, max(from, e.first), nil
		}
		from = sh.pub.drained // the last ones before it were lost
	}
	if from >= sh.pub.next {
		return extent{}, nil, from, nil
	}
	tail := sh.pub.tail
	first := sort.Search(len(tail), func(i int) bool { return tail[i].end() > from })
	last, records, bytes := first+1, len(got.records), got.bytes
	for last < len(tail) && records < got.maxRecords && bytes < got.maxBytes {
		records += tail[last].count // the first batch may contribute one record only
		bytes += len(tail[last].frames) - tail[last].count*frameHeader
		last++
	}
	return extent{}, slices.Clone(tail[first:last]), from, nil
}

// extentAtLocked returns the segment with the record at index, or with the first one after it if
// that one was lost.
func (sh *Shard) extentAtLocked(index uint64) (e extent, ok bool) {
	segs := sh.pub.segments
	n := sort.Search(len(segs), func(i int) bool { return segs[i].end > index })
	if n == len(segs) {
		return extent{}, false
	}
	return segs[n].extentLocked(), true
}

// readSegment adds the extent's records from index on to got.
func (s *Store) readSegment(ctx context.Context, e extent, index uint64, got *collector) error {
	file, err := s.files.hold(e.segment)
	if err != nil {
		return err
	}
	defer s.files.release(file)
	at, err := s.locate(ctx, e, file, index)
	if err != nil {
		return err
	}
	expect, mean := e.expect(got)
	got.reserve(expect)
	scan := e.scanner(file, at, (int64(expect)+int64(index-at.index)+1)*mean)
	scan.lent = got.lent
	if got.small {
		scan.small, scan.most = index, frameHeader+got.maxBytes
	}
	for !got.full() {
		f, err := scan.scan()
		if err != nil {
			if err := got.ended(e, err); err != nil {
				return err
			}
			break
		}
		if f.index >= index && !got.add(f) {
			s.sparse.remember(e.segment,
				place{index: f.index, offset: scan.off - int64(f.size)})
			return nil
		}
	}
	s.sparse.remember(e.segment, place{index: scan.next, offset: scan.off})
	return nil
}

// expect estimates the number of records that got will take of the extent, and the size of a
// frame.
func (e extent) expect(got *collector) (records int, mean int64) {
	mean = e.size/int64(e.end-e.first) + 1
	bytes := int64(max(got.maxBytes-got.bytes, 0))
	byBytes := bytes/max(mean-frameHeader, 1) + 1
	byRecords := int64(got.maxRecords - len(got.records))
	return int(min(byBytes, byRecords, int64(e.end-e.first))), mean
}

// collector takes records until a limit is reached.
type collector struct {
	lent       *Chunks // may be nil
	skips      skips
	maxRecords int
	maxBytes   int
	bytes      int
	next       uint64 // where to read on: after the last record, and the lost ones behind it
	small      bool   // take no record larger than maxBytes
	larger     int    // the size of the first record, if it is not small
	stopped    bool
	records    []Record
	// keys holds the partition keys one after another; they become one string.
	keys []byte
	ends []int
}

// reserve makes room for n more records.
func (c *collector) reserve(n int) {
	c.records = slices.Grow(c.records, n)
	c.ends = slices.Grow(c.ends, n)
}

func (c *collector) full() bool {
	return c.stopped || len(c.records) >= c.maxRecords ||
		(c.bytes >= c.maxBytes && len(c.records) > 0)
}

// add takes a record. It returns false if the limits do not allow it.
func (c *collector) add(f frame) bool {
	size := len(f.key) + len(f.data)
	if c.full() || !c.fits(size) {
		c.stopped = true
		return false
	}
	number := Number{f.index, c.skips.serial(f.index), f.arrival}
	c.records = append(c.records, Record{Number: number, Data: f.data})
	c.keys = append(c.keys, f.key...)
	c.ends = append(c.ends, len(c.keys))
	c.bytes += size
	c.next = f.index + 1
	return true
}

// fits reports whether the next record, of so many bytes, is within the limits. It stops if not.
func (c *collector) fits(size int) bool {
	switch {
	case size <= c.maxBytes-c.bytes:
		return true
	case len(c.records) > 0:
	case c.small:
		c.larger = size
	default:
		return true // at least one record
	}
	c.stopped = true
	return false
}

// ended notes the reason for which the extent's scan has ended, and returns it if it is a failure.
func (c *collector) ended(e extent, err error) error {
	var large *largeError
	switch {
	case errors.Is(err, io.EOF):
		c.next = max(c.next, e.end)
	case errors.As(err, &large):
		c.fits(large.size - frameHeader)
	default:
		return err
	}
	return nil
}

// addBatch takes the records of a batch. It returns false if the limits do not allow all.
func (c *collector) addBatch(b *batch) bool {
	rest := b.frames
	for range b.count {
		f := readFrame(rest)
		if !c.add(f) {
			return false
		}
		rest = rest[f.size:]
	}
	return true
}

// finish gives the records their keys.
func (c *collector) finish() []Record {
	keys := string(c.keys)
	start := 0
	for i, end := range c.ends {
		c.records[i].PartitionKey = keys[start:end]
		start = end
	}
	return c.records
}
