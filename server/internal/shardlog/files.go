package shardlog

import (
	"math"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/runnel-stream/runnel/internal/vfs"
)

// files caches open segment files, up to a limit. It closes the least recently used file that has
// no holder. Held files may exceed the limit.
type files struct {
	fs    vfs.FS
	limit int

	mu struct {
		sync.Mutex
		open   *simplelru.LRU[*segment, *handle]
		closed bool
	}
}

// handle is an open segment file. It is closed once it is out of the cache and its last holder
// has released it.
type handle struct {
	vfs.File
	seg   *segment
	holds int  // guarded by files.mu
	out   bool // of the cache; guarded by files.mu
}

func newFiles(fsys vfs.FS, limit int) *files {
	f := &files{fs: fsys, limit: limit}
	f.mu.open = newLRU[*segment, *handle]()
	return f
}

// newLRU returns a cache that drops nothing by itself: its owner knows what an entry costs.
func newLRU[K comparable, V any]() *simplelru.LRU[K, V] {
	cache, err := simplelru.NewLRU[K, V](math.MaxInt, nil)
	if err != nil {
		panic(err) // of a size that is not positive
	}
	return cache
}

// hold returns the segment's file, open, until release.
func (f *files) hold(seg *segment) (*handle, error) {
	if h := f.cached(seg); h != nil {
		return h, nil
	}
	file, err := f.fs.Open(seg.path())
	if err != nil {
		return nil, err
	}
	return f.add(seg, file)
}

// create makes the segment's file, empty, and holds it until release.
func (f *files) create(seg *segment) (*handle, error) {
	file, err := f.fs.Create(seg.path())
	if err != nil {
		return nil, err
	}
	return f.add(seg, file)
}

func (f *files) cached(seg *segment) *handle {
	f.mu.Lock()
	defer f.mu.Unlock()
	h, cached := f.mu.open.Get(seg)
	if cached {
		h.holds++
	}
	return h
}

func (f *files) add(seg *segment, file vfs.File) (*handle, error) {
	f.mu.Lock()
	if f.mu.closed {
		f.mu.Unlock()
		closeIdle(file)
		return nil, ErrClosed
	}
	if h, cached := f.mu.open.Get(seg); cached { // another goroutine was faster
		h.holds++
		f.mu.Unlock()
		closeIdle(file)
		return h, nil
	}
	h := &handle{File: file, seg: seg, holds: 1}
	f.mu.open.Add(seg, h)
	idle := f.shrinkLocked()
	f.mu.Unlock()
	closeIdle(idle...)
	return h, nil
}

// shrinkLocked takes files without a holder out of the cache, the least recently used first, until
// the limit holds.
func (f *files) shrinkLocked() (idle []vfs.File) {
	for range f.mu.open.Len() {
		if f.mu.open.Len() <= f.limit {
			break
		}
		seg, h, _ := f.mu.open.GetOldest()
		if h.holds > 0 {
			f.mu.open.Get(seg) // a file with a holder is in use: it counts as used now
			continue
		}
		f.outLocked(h)
		idle = append(idle, h)
	}
	return idle
}

// again adds a hold to a handle that the caller holds.
func (f *files) again(h *handle) {
	f.mu.Lock()
	h.holds++
	f.mu.Unlock()
}

// release ends a hold.
func (f *files) release(h *handle) {
	f.mu.Lock()
	h.holds--
	last := h.holds == 0 && h.out
	f.mu.Unlock()
	if last {
		closeIdle(h)
	}
}

// forget removes the segment's file from the cache.
func (f *files) forget(seg *segment) {
	f.mu.Lock()
	h, cached := f.mu.open.Peek(seg)
	if cached {
		f.outLocked(h)
	}
	idle := cached && h.holds == 0
	f.mu.Unlock()
	if idle {
		closeIdle(h)
	}
}

func (f *files) outLocked(h *handle) {
	f.mu.open.Remove(h.seg)
	h.out = true
}

// close closes the files without a holder; the others close when they are released.
func (f *files) close() {
	f.mu.Lock()
	f.mu.closed = true
	var idle []vfs.File
	for _, h := range f.mu.open.Values() {
		f.outLocked(h)
		if h.holds == 0 {
			idle = append(idle, h)
		}
	}
	f.mu.Unlock()
	closeIdle(idle...)
}

// closeIdle closes files without unsynced data: a writer holds its file until the sync. So an
// error of closing has no consequence and is ignored.
func closeIdle(files ...vfs.File) {
	for _, file := range files {
		_ = file.Close()
	}
}
