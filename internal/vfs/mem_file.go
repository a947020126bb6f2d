package vfs

import (
	"io"
	"io/fs"
	"sync"
	"sync/atomic"
	"time"
)

const (
	pageSize   = 64 << 10
	firstPage  = 1 << 10 // the least length of a file's first page, which doubles up to pageSize
	sectorSize = 512     // the unit that a disk writes as a whole; also the unit of torn writes
)

type (
	// page is a part of a file of pageSize bytes, of which those behind its length are zeros. Only
	// a file's first page is shorter, so that ten thousand short files take little.
	page   []byte
	sector [sectorSize]byte
)

// memData is the content of a file.
type memData struct {
	fs *Mem

	mu     sync.RWMutex
	pages  []page
	size   int64
	mod    time.Time
	gone   bool // the last name is removed: its size no longer counts
	unsync *unsynced
}

// unsynced is the part of a file that a crash may undo.
type unsynced struct {
	size int64 // at the last Sync
	// The old content of the sectors changed since then; nil: zeros.
	before map[int64]*sector
	// The sectors of a failed Sync: no later Sync makes them durable unless they are written
	// again.
	doomed map[int64]*sector
	last   int64 // the sector written last
}

func newData(m *Mem) *memData {
	d := &memData{fs: m, mod: time.Now()}
	if m.track {
		d.unsync = newUnsynced(0)
	}
	return d
}

func newUnsynced(size int64) *unsynced {
	return &unsynced{size: size, before: make(map[int64]*sector), last: -1}
}

// memFile is a handle of a file.
type memFile struct {
	name   string
	data   *memData
	closed atomic.Bool
}

func (f *memFile) check(op string, err error) error {
	if f.closed.Load() {
		err = fs.ErrClosed
	}
	if err != nil {
		return pathError(op, f.name, err)
	}
	return nil
}

// ReadAt implements File.
func (f *memFile) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, pathError("read", f.name, fs.ErrInvalid)
	}
	if err := f.check("read", nil); err != nil {
		return 0, err
	}
	return f.data.readAt(p, off)
}

// WriteAt implements File.
func (f *memFile) WriteAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, pathError("write", f.name, fs.ErrInvalid)
	}
	if err := f.check("write", nil); err != nil {
		return 0, err
	}
	n, err := f.data.writeAt(p, off)
	return n, f.check("write", err)
}

// Close implements File.
func (f *memFile) Close() error {
	if f.closed.Swap(true) {
		return pathError("close", f.name, fs.ErrClosed)
	}
	return nil
}

// Size implements File.
func (f *memFile) Size() (int64, error) {
	size, _ := f.data.stat()
	return size, f.check("stat", nil)
}

// Allocate implements File.
func (f *memFile) Allocate(size int64) error {
	if err := f.check("allocate", nil); err != nil {
		return err
	}
	return f.check("allocate", f.data.allocate(size))
}

// Truncate implements File.
func (f *memFile) Truncate(size int64) error {
	if size < 0 {
		return pathError("truncate", f.name, fs.ErrInvalid)
	}
	if err := f.check("truncate", nil); err != nil {
		return err
	}
	return f.check("truncate", f.data.truncate(size))
}

// Sync implements File.
func (f *memFile) Sync() error {
	if err := f.check("sync", nil); err != nil {
		return err
	}
	f.data.sync()
	return nil
}

// failSync has the effect of a failed Sync: see Inject.
func (f *memFile) failSync() { f.data.failSync() }

func (d *memData) stat() (int64, time.Time) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.size, d.mod
}

func (d *memData) readAt(p []byte, off int64) (int, error) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	n := 0
	for n < len(p) && off < d.size {
		at := int(off % pageSize)
		room := min(len(p)-n, pageSize-at, int(min(d.size-off, pageSize)))
		moved := 0
		if pg := d.page(off / pageSize); at < len(pg) {
			moved = copy(p[n:n+room], pg[at:])
		}
		clear(p[n+moved : n+room])
		n += room
		off += int64(room)
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// lock begins a change, and unlock ends it. A crash is one instant for the whole disk, so it
// waits for running changes of any file.
func (d *memData) lock() {
	if d.unsync != nil {
		d.fs.instant.RLock()
	}
	d.mu.Lock()
}

func (d *memData) unlock() {
	d.mu.Unlock()
	if d.unsync != nil {
		d.fs.instant.RUnlock()
	}
}

func (d *memData) writeAt(p []byte, off int64) (int, error) {
	d.lock()
	defer d.unlock()
	var full error
	if end := off + int64(len(p)); end > d.size {
		if got := d.grow(end); got < end { // as on a disk, the part that fits is written
			p, full = p[:max(0, got-off)], ErrNoSpace
		}
	}
	d.mod = time.Now()
	d.remember(off, off+int64(len(p)))
	for n := 0; n < len(p); {
		at := int(off % pageSize)
		pg := d.pageFor(off/pageSize, min(pageSize, at+len(p)-n))
		moved := copy(pg[at:], p[n:])
		n += moved
		off += int64(moved)
	}
	return len(p), full
}

// grow lengthens the file to size, or as far as there is room, and returns the new length.
func (d *memData) grow(size int64) int64 {
	add := size - d.size
	if !d.gone {
		used := d.fs.used.Add(add)
		if limit := d.fs.limit.Load(); limit > 0 && used > limit {
			back := min(add, used-limit)
			d.fs.used.Add(-back)
			add -= back
		}
	}
	d.size += add
	return d.size
}

func (d *memData) truncate(size int64) error {
	d.lock()
	defer d.unlock()
	if size >= d.size {
		return d.lengthen(size)
	}
	d.mod = time.Now()
	d.shrink(size)
	return nil
}

func (d *memData) allocate(size int64) error {
	d.lock()
	defer d.unlock()
	if size <= d.size {
		return nil
	}
	return d.lengthen(size)
}

// lengthen grows the file to size, or fails without a change.
func (d *memData) lengthen(size int64) error {
	was := d.size
	if d.grow(size) < size {
		d.shrink(was)
		return ErrNoSpace
	}
	d.mod = time.Now()
	return nil
}

func (d *memData) shrink(size int64) {
	for i := int(size / pageSize); d.unsync != nil && i < len(d.pages); i++ {
		if d.pages[i] != nil {
			d.remember(max(size, int64(i)*pageSize), min(d.size, int64(i+1)*pageSize))
		}
	}
	if !d.gone {
		d.fs.used.Add(size - d.size)
	}
	d.size = size
	d.zeroTail()
}

// zeroTail clears the pages' bytes behind the file's end.
func (d *memData) zeroTail() {
	keep := int((d.size + pageSize - 1) / pageSize)
	if keep < len(d.pages) {
		d.count(-bytesIn(d.pages[keep:]))
		clear(d.pages[keep:])
		d.pages = d.pages[:keep]
	}
	if pg, at := d.page(d.size/pageSize), d.size%pageSize; at < int64(len(pg)) {
		clear(pg[at:])
	}
}

func (d *memData) page(i int64) page {
	if i >= int64(len(d.pages)) {
		return nil
	}
	return d.pages[i]
}

// pageFor returns a page of at least so many bytes.
func (d *memData) pageFor(i int64, least int) page {
	for int64(len(d.pages)) <= i {
		d.pages = append(d.pages, nil)
	}
	before := d.pages[i]
	if least <= len(before) {
		return before
	}
	size := pageSize
	if i == 0 {
		for size = firstPage; size < least; {
			size *= 2
		}
	}
	d.pages[i] = make(page, size)
	copy(d.pages[i], before)
	d.count(int64(size - len(before)))
	return d.pages[i]
}

// count counts bytes of pages that the file has got, or with n below 0 lost.
func (d *memData) count(n int64) {
	if !d.gone {
		d.fs.held.Add(n)
	}
}

// bytesIn returns the length of all pages.
func bytesIn(pages []page) (n int64) {
	for _, pg := range pages {
		n += int64(len(pg))
	}
	return n
}

// remember saves the old content of the sectors of [lo, hi) before a change.
func (d *memData) remember(lo, hi int64) {
	if d.unsync == nil || lo >= hi {
		return
	}
	for s := lo / sectorSize; s <= (hi-1)/sectorSize; s++ {
		d.unsync.last = s
		if _, ok := d.unsync.before[s]; ok {
			continue
		}
		if old, ok := d.unsync.doomed[s]; ok {
			delete(d.unsync.doomed, s)
			d.unsync.before[s] = old
			continue
		}
		var old *sector
		at := s * sectorSize % pageSize
		if pg := d.page(s * sectorSize / pageSize); at < int64(len(pg)) {
			old = new(sector)
			copy(old[:], pg[at:])
		}
		d.unsync.before[s] = old
	}
}

func (d *memData) sync() {
	if d.unsync == nil {
		return
	}
	d.lock()
	defer d.unlock()
	d.unsync.size = d.size
	clear(d.unsync.before)
}

func (d *memData) failSync() {
	if d.unsync == nil {
		return
	}
	d.lock()
	defer d.unlock()
	if d.unsync.doomed == nil {
		d.unsync.doomed = make(map[int64]*sector)
	}
	for s, old := range d.unsync.before {
		d.unsync.doomed[s] = old
	}
	clear(d.unsync.before)
}

// forget subtracts the size of a file without a name.
func (d *memData) forget() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.gone {
		d.count(-bytesIn(d.pages))
		d.gone = true
		d.fs.used.Add(-d.size)
	}
}
