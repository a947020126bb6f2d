package vfs

import (
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"syscall"
)

var (
	errIsDir    error = syscall.EISDIR
	errNotEmpty error = syscall.ENOTEMPTY
)

// node is a file or a folder of a Mem. Its entries are guarded by Mem.mu.
type node struct {
	data    *memData         // of a file
	entries map[string]*node // of a folder: the visible names
	durable map[string]*node // of a folder, if tracked: the names as of the last SyncDir
	links   int              // the number of a file's names
}

func newFile(m *Mem) *node { return &node{data: newData(m)} }

func newDir(track bool) *node {
	n := &node{entries: make(map[string]*node)}
	if track {
		n.durable = make(map[string]*node)
	}
	return n
}

func (n *node) isDir() bool { return n.entries != nil }

// edit is the change of one name from the node was to the node to; nil means no node.
type edit struct {
	dir     *node
	name    string
	was, to *node
	synced  bool
}

// dirOp is an operation on names. A crash keeps or loses it as a whole.
type dirOp []edit

// apply makes the operation's changes to the durable names, as seen through view. It removes a
// name only if the name still refers to the same node: the operation that added the name may have
// been lost while a later one was kept.
func (op dirOp) apply(view func(dir *node) map[string]*node) {
	for _, e := range op {
		names := view(e.dir)
		switch {
		case e.to != nil:
			names[e.name] = e.to
		case names[e.name] == e.was:
			delete(names, e.name)
		}
	}
}

// change makes an operation visible and records that it is not durable.
func (m *Mem) change(op ...edit) {
	for _, e := range op {
		if e.to != nil {
			e.dir.entries[e.name] = e.to
			e.to.links++
		} else {
			delete(e.dir.entries, e.name)
		}
		if e.was != nil {
			e.was.links--
		}
	}
	for _, e := range op {
		if e.was != nil && e.was.links == 0 && !e.was.isDir() {
			e.was.data.forget()
		}
	}
	if m.track {
		m.pending = append(m.pending, op)
	}
}

// settle makes the operations in dir durable. An operation on two folders is durable once both
// were synced.
func (m *Mem) settle(dir *node) {
	left := m.pending[:0]
	for _, op := range m.pending {
		open := false
		for i := range op {
			op[i].synced = op[i].synced || op[i].dir == dir
			open = open || !op[i].synced
		}
		if open {
			left = append(left, op)
			continue
		}
		op.apply(func(d *node) map[string]*node { return d.durable })
	}
	clear(m.pending[len(left):])
	m.pending = left
}

func clean(name string) string { return path.Clean("/" + name) }

func split(name string) []string {
	name = clean(name)[1:]
	if name == "" {
		return nil
	}
	return strings.Split(name, "/")
}

func (m *Mem) find(op, name string) (*node, error) {
	at := m.root
	for _, base := range split(name) {
		if at = at.entries[base]; at == nil { // a file's entries are nil
			return nil, pathError(op, name, fs.ErrNotExist)
		}
	}
	return at, nil
}

// parent returns the folder of a name, and its base name.
func (m *Mem) parent(op, name string) (*node, string, error) {
	dir, base := path.Split(clean(name))
	if base == "" {
		return nil, "", pathError(op, name, fs.ErrInvalid)
	}
	n, err := m.find(op, dir)
	if err != nil {
		return nil, "", pathError(op, name, fs.ErrNotExist)
	}
	if !n.isDir() {
		return nil, "", pathError(op, name, errNotDir)
	}
	return n, base, nil
}

func pathError(op, name string, err error) error {
	return &fs.PathError{Op: op, Path: name, Err: err}
}

func sortedNames(names map[string]*node) []string {
	return slices.Sorted(maps.Keys(names))
}

func sortedKeys(sets ...map[int64]*sector) []int64 {
	var keys []int64
	for _, set := range sets {
		keys = slices.AppendSeq(keys, maps.Keys(set))
	}
	slices.Sort(keys)
	return keys
}
