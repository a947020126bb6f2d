package shardlog

import (
	"container/list"
	"sync"

	"github.com/runnel-stream/runnel/internal/vfs"
)

// files caches open segment files, up to a limit. It closes the least recently used file that has
// no holder. Held files may exceed the limit.
type files struct {
	fs    vfs.FS
	limit int

	mu struct {
		sync.Mutex
		open   map[*segment]*handle
		order  *list.List // of *handle, the most recently used in front
		closed bool
	}
}

// handle is an open segment file. It is closed once it is out of the cache and its last holder
// has released it.
type handle struct {
	vfs.File
	seg   *segment
	holds int           // guarded by files.mu
	place *list.Element // nil once the file is out of the cache
}

func newFiles(fsys vfs.FS, limit int) *files {
	f := &files{fs: fsys, limit: limit}
	f.mu.open = map[*segment]*handle{}
	f.mu.order = list.New()
	return f
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
	h := f.mu.open[seg]
	if h != nil {
		h.holds++
		f.mu.order.MoveToFront(h.place)
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
	if h := f.mu.open[seg]; h != nil { // another goroutine was faster
		h.holds++
		f.mu.order.MoveToFront(h.place)
		f.mu.Unlock()
		closeIdle(file)
		return h, nil
	}
	h := &handle{File: file, seg: seg, holds: 1}
	h.place = f.mu.order.PushFront(h)
	f.mu.open[seg] = h
	var idle []vfs.File
	for at := f.mu.order.Back(); at != nil && f.mu.order.Len() > f.limit; {
		old := at.Value.(*handle)
		at = at.Prev()
		if old.holds == 0 {
			f.outLocked(old)
			idle = append(idle, old)
		}
	}
	f.mu.Unlock()
	closeIdle(idle...)
	return h, nil
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
	last := h.holds == 0 && h.place == nil
	f.mu.Unlock()
	if last {
		closeIdle(h)
	}
}

// forget removes the segment's file from the cache.
func (f *files) forget(seg *segment) {
	f.mu.Lock()
	h := f.mu.open[seg]
	if h != nil {
		f.outLocked(h)
	}
	idle := h != nil && h.holds == 0
	f.mu.Unlock()
	if idle {
		closeIdle(h)
	}
}

func (f *files) outLocked(h *handle) {
	f.mu.order.Remove(h.place)
	h.place = nil
	delete(f.mu.open, h.seg)
}

// close closes the files without a holder; the others close when they are released.
func (f *files) close() {
	f.mu.Lock()
	f.mu.closed = true
	var idle []vfs.File
	for _, h := range f.mu.open {
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
