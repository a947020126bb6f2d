package vfs

import (
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Mem is a file system in memory, safe for concurrent use. It allocates memory for written data
// only, in pages of 64 KiB, of which a file's first one begins with 1 KiB and doubles. It frees a
// file once its last name is removed and its last handle is closed.
//
// Relative names start at the root.
type Mem struct {
	track bool // record the state for Crash
	limit atomic.Int64
	used  atomic.Int64
	held  atomic.Int64 // the length of all pages

	// instant is held shared by changes of files and exclusively by Crash; used only with track.
	// Take it after mu and before a node's own lock.
	instant sync.RWMutex

	mu      sync.Mutex // guards the tree; take it before a node's lock
	root    *node
	locks   map[*node]bool
	pending []dirOp // not covered by a SyncDir, oldest first; only with track
}

// NewMem returns an empty file system that cannot crash: Sync does nothing and costs nothing.
func NewMem() *Mem { return newMem(false) }

// NewCrashable returns an empty file system that records its durable state: see Crash.
func NewCrashable() *Mem { return newMem(true) }

func newMem(track bool) *Mem {
	m := &Mem{track: track, locks: make(map[*node]bool)}
	m.root = newDir(track)
	return m
}

var _ FS = (*Mem)(nil)

// SetLimit limits the sum of the files' lengths, in bytes; a write or an Allocate beyond it fails
// with ErrNoSpace. 0 means no limit. Existing files stay.
func (m *Mem) SetLimit(bytes int64) { m.limit.Store(bytes) }

// Used returns the sum of the files' lengths.
func (m *Mem) Used() int64 { return m.used.Load() }

// Memory returns the bytes of memory that the files take: that of their pages. A file of one byte
// takes 1 KiB, and a file that was only allocated takes none.
func (m *Mem) Memory() int64 { return m.held.Load() }

// Create implements FS.
func (m *Mem) Create(name string) (File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	dir, base, err := m.parent("create", name)
	if err != nil {
		return nil, err
	}
	n := dir.entries[base]
	switch {
	case n == nil:
		n = newFile(m)
		m.change(edit{dir: dir, name: base, to: n})
	case n.isDir():
		return nil, pathError("create", name, errIsDir)
	default:
		if err := n.data.truncate(0); err != nil {
			return nil, pathError("create", name, err)
		}
	}
	return &memFile{name: name, data: n.data}, nil
}

// Open implements FS.
func (m *Mem) Open(name string) (File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.find("open", name)
	if err != nil {
		return nil, err
	}
	if n.isDir() {
		return nil, pathError("open", name, errIsDir)
	}
	return &memFile{name: name, data: n.data}, nil
}

// Remove implements FS.
func (m *Mem) Remove(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	dir, base, err := m.parent("remove", name)
	if err != nil {
		return err
	}
	n := dir.entries[base]
	if n == nil {
		return pathError("remove", name, fs.ErrNotExist)
	}
	if n.isDir() && len(n.entries) > 0 {
		return pathError("remove", name, errNotEmpty)
	}
	m.change(edit{dir: dir, name: base, was: n})
	return nil
}

// Rename implements FS.
func (m *Mem) Rename(from, to string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	fromDir, fromBase, err := m.parent("rename", from)
	if err != nil {
		return err
	}
	n := fromDir.entries[fromBase]
	if n == nil {
		return pathError("rename", from, fs.ErrNotExist)
	}
	toDir, toBase, err := m.parent("rename", to)
	if err != nil {
		return err
	}
	old := toDir.entries[toBase]
	switch {
	case old == n:
		return nil
	case old != nil && (old.isDir() || n.isDir()):
		return pathError("rename", to, fs.ErrExist)
	case n.isDir() && strings.HasPrefix(clean(to)+"/", clean(from)+"/"):
		return pathError("rename", to, fs.ErrInvalid)
	}
	m.change(edit{dir: toDir, name: toBase, was: old, to: n},
		edit{dir: fromDir, name: fromBase, was: n})
	return nil
}

// Link implements FS.
func (m *Mem) Link(from, to string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.find("link", from)
	if err != nil {
		return err
	}
	dir, base, err := m.parent("link", to)
	switch {
	case err != nil:
		return err
	case n.isDir():
		return pathError("link", from, errIsDir)
	case dir.entries[base] != nil:
		return pathError("link", to, fs.ErrExist)
	}
	m.change(edit{dir: dir, name: base, to: n})
	return nil
}

// Mkdir implements FS.
func (m *Mem) Mkdir(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	dir, base, err := m.parent("mkdir", name)
	if err != nil {
		return err
	}
	if dir.entries[base] != nil {
		return pathError("mkdir", name, fs.ErrExist)
	}
	m.change(edit{dir: dir, name: base, to: newDir(m.track)})
	return nil
}

// MkdirAll implements FS.
func (m *Mem) MkdirAll(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	at := m.root
	for _, base := range split(name) {
		next := at.entries[base]
		if next == nil {
			next = newDir(m.track)
			at.entries[base] = next
			if m.track {
				at.durable[base] = next
			}
		}
		if !next.isDir() {
			return pathError("mkdir", name, errNotDir)
		}
		at = next
	}
	return nil
}

// List implements FS.
func (m *Mem) List(dir string) ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.find("list", dir)
	if err != nil {
		return nil, err
	}
	if !n.isDir() {
		return nil, pathError("list", dir, errNotDir)
	}
	names := make([]string, 0, len(n.entries))
	for name := range n.entries {
		names = append(names, name)
	}
	slices.Sort(names)
	return names, nil
}

// Stat implements FS.
func (m *Mem) Stat(name string) (fs.FileInfo, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.find("stat", name)
	if err != nil {
		return nil, err
	}
	info := memInfo{name: path.Base(clean(name)), dir: n.isDir()}
	if !n.isDir() {
		info.size, info.mod = n.data.stat()
	}
	return info, nil
}

// SyncDir implements FS.
func (m *Mem) SyncDir(dir string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.find("sync", dir)
	if err != nil {
		return err
	}
	if !n.isDir() {
		return pathError("sync", dir, errNotDir)
	}
	m.settle(n)
	return nil
}

// Lock implements FS.
func (m *Mem) Lock(name string) (Lock, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	dir, base, err := m.parent("lock", name)
	if err != nil {
		return nil, err
	}
	n := dir.entries[base]
	switch {
	case n == nil:
		n = newFile(m)
		m.change(edit{dir: dir, name: base, to: n})
	case n.isDir():
		return nil, pathError("lock", name, errIsDir)
	}
	if m.locks[n] || m.locks[dir] {
		return nil, pathError("lock", name, ErrLocked)
	}
	m.locks[n], m.locks[dir] = true, true
	return &memLock{fs: m, on: n, dir: dir, path: path.Dir(clean(name))}, nil
}

type memLock struct {
	fs      *Mem
	on, dir *node
	path    string // of dir
}

// Close releases the lock.
func (l *memLock) Close() error {
	l.fs.mu.Lock()
	defer l.fs.mu.Unlock()
	if l.on == nil {
		return fs.ErrClosed
	}
	delete(l.fs.locks, l.on)
	delete(l.fs.locks, l.dir)
	l.on = nil
	return nil
}

// Check implements Lock.
func (l *memLock) Check() error {
	l.fs.mu.Lock()
	defer l.fs.mu.Unlock()
	if n, err := l.fs.find("check", l.path); err != nil || n != l.dir {
		return pathError("check", l.path, ErrGone)
	}
	return nil
}

type memInfo struct {
	name string
	size int64
	dir  bool
	mod  time.Time
}

func (i memInfo) Name() string       { return i.name }
func (i memInfo) Size() int64        { return i.size }
func (i memInfo) ModTime() time.Time { return i.mod }
func (i memInfo) IsDir() bool        { return i.dir }
func (i memInfo) Sys() any           { return nil }
func (i memInfo) Mode() fs.FileMode {
	if i.dir {
		return fs.ModeDir | dirMode
	}
	return fileMode
}
