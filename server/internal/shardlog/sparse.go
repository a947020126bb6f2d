package shardlog

import (
	"sort"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// place is where a record's frame begins in its segment.
type place struct {
	index   uint64
	offset  int64
	arrival int64
}

// sparseStep is the distance between the places of a sparse index, in bytes.
const sparseStep = 64 << 10

// sparseBase is the cost of an index without places, in places.
const sparseBase = 16

// sparse is the index of a segment's beginning, possibly of all of it. The drainer extends it as
// it writes, as long as no gap lies before; otherwise searches extend it as they scan (see
// locate).
type sparse struct {
	places []place
	// covered is the end of the indexed part, with the arrival of the last record there.
	covered place
	// recent holds the ends of recent reads, so that a sequential reader finds its place at once.
	recent [4]place
	turn   int
}

// sparseCache keeps the most recently used sparse indexes.
type sparseCache struct {
	mu    sync.Mutex
	limit int // of places in all indexes
	count int
	of    *simplelru.LRU[*segment, *sparse]
}

func newSparseCache(limit int) *sparseCache {
	return &sparseCache{limit: limit, of: newLRU[*segment, *sparse]()}
}

// useLocked returns the segment's index, empty if there is none.
func (c *sparseCache) useLocked(seg *segment) *sparse {
	sp, known := c.of.Get(seg)
	if !known {
		sp = &sparse{covered: place{index: seg.first}}
		c.of.Add(seg, sp)
		c.count += sparseBase
	}
	return sp
}

func (c *sparseCache) shrinkLocked() {
	for c.count > c.limit && c.of.Len() > 1 {
		_, sp, _ := c.of.RemoveOldest()
		c.count -= sp.cost()
	}
}

// cost is the cost of the index, in places.
func (sp *sparse) cost() int { return sparseBase + len(sp.places) }

// forget drops the index of a segment that is removed.
func (c *sparseCache) forget(seg *segment) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if sp, known := c.of.Peek(seg); known {
		c.of.Remove(seg)
		c.count -= sp.cost()
	}
}

// extend extends the index, which must end at from; otherwise it changes nothing. It adds those
// of the found places that are far enough apart, and moves the end to covered. found must be in
// order.
func (c *sparseCache) extend(seg *segment, from place, found []place, covered place) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.of.Contains(seg) && from.offset > 0 {
		return // it was dropped, or the segment is older than this life: a search will scan
	}
	sp := c.useLocked(seg)
	if sp.covered.offset != from.offset {
		return
	}
	for _, at := range found {
		n := len(sp.places)
		if n == 0 || at.offset-sp.places[n-1].offset >= sparseStep {
			sp.places = append(sp.places, at)
			c.count++
		}
	}
	sp.covered = covered
	c.shrinkLocked()
}

// remember records the end of a read.
func (c *sparseCache) remember(seg *segment, end place) {
	c.mu.Lock()
	defer c.mu.Unlock()
	sp := c.useLocked(seg)
	sp.recent[sp.turn] = end
	sp.turn = (sp.turn + 1) % len(sp.recent)
	c.shrinkLocked()
}

// before returns the last known place at or before the record at index, and the end of the
// indexed part. near may be far off if that end is at or before index, unless near is index
// itself.
func (c *sparseCache) before(seg *segment, index uint64) (near, covered place) {
	c.mu.Lock()
	defer c.mu.Unlock()
	near = place{index: seg.first}
	sp, known := c.of.Get(seg)
	if !known {
		return near, near
	}
	n := sort.Search(len(sp.places), func(i int) bool { return sp.places[i].index > index })
	if n > 0 {
		near = sp.places[n-1]
	}
	for _, at := range sp.recent {
		if at.index <= index && at.index > near.index {
			near = at
		}
	}
	return near, sp.covered
}

// beforeArrival returns the last known place of a record that arrived before ms, or the segment's
// beginning, and the end of the indexed part with the arrival of its last record.
func (c *sparseCache) beforeArrival(seg *segment, ms int64) (near, covered place) {
	c.mu.Lock()
	defer c.mu.Unlock()
	near = place{index: seg.first}
	sp, known := c.of.Get(seg)
	if !known {
		return near, near
	}
	n := sort.Search(len(sp.places), func(i int) bool { return sp.places[i].arrival >= ms })
	if n > 0 {
		near = sp.places[n-1]
	}
	return near, sp.covered
}

// appendPlaces adds places in a batch that begins at offset in its segment: its beginning, and
// one for about every sparseStep of it.
func appendPlaces(found []place, b *batch, offset int64) []place {
	found = append(found, place{b.first, offset, b.arrival})
	if len(b.frames) <= sparseStep {
		return found
	}
	at, last := offset, offset
	rest := b.frames
	for index := b.first; index < b.end(); index++ {
		if at-last >= sparseStep {
			found = append(found, place{index, at, b.arrival})
			last = at
		}
		next := skipFrames(rest, 1)
		at += int64(len(rest) - len(next))
		rest = next
	}
	return found
}
