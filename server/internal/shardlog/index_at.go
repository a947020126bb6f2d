package shardlog

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sort"
)

// IndexAt returns the index of the first visible record with an arrival of at least ms (since
// 1970), or Bounds' next if there is none yet. Errors: those of Read.
func (sh *Shard) IndexAt(ctx context.Context, ms int64) (uint64, error) {
	for {
		if ctx.Err() != nil {
			return 0, ctx.Err()
		}
		index, e, err := sh.arrivalView(ms)
		if err == nil && e.segment != nil {
			index, err = sh.store.locateArrival(ctx, e, ms)
		}
		oldest, _ := sh.Bounds()
		switch {
		case err == nil:
			return max(index, oldest), nil
		case errors.Is(err, fs.ErrNotExist) && oldest >= e.end:
			continue // trimmed meanwhile
		case errors.Is(err, fs.ErrNotExist):
			err = e.missing(err)
		}
		return 0, fmt.Errorf("find time %d ms in shard %d: %w", ms, sh.id, err)
	}
}

// arrivalView returns the index, or the segment that holds the record.
func (sh *Shard) arrivalView(ms int64) (uint64, extent, error) {
	sh.pub.Lock()
	defer sh.pub.Unlock()
	switch {
	case sh.pub.deleted:
		return 0, extent{}, ErrDeleted
	case sh.pub.closed:
		return 0, extent{}, ErrClosed
	case sh.pub.arrival < ms:
		return sh.pub.next, extent{}, nil
	}
	segs, tail := sh.pub.segments, sh.pub.tail
	n := sort.Search(len(segs), func(i int) bool { return segs[i].lastArrival >= ms })
	switch {
	case n == len(segs):
		n = sort.Search(len(tail), func(i int) bool { return tail[i].arrival >= ms })
		if n == len(tail) {
			return sh.pub.next, extent{}, nil // all trimmed, and their segments removed
		}
		return tail[n].first, extent{}, nil
	case segs[n].firstArrival >= ms || segs[n].end <= sh.pub.oldest:
		return segs[n].first, extent{}, nil
	default:
		return 0, segs[n].extentLocked(), nil
	}
}
