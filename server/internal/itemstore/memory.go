package itemstore

import (
	"errors"
	"sync/atomic"
)

// ErrItemsMemory is returned for a write that would take more memory than Config.MaxMemory.
var ErrItemsMemory = errors.New("the items take as much memory as they may")

// entryWeight is the memory that an item takes besides its place and its encoding: the entry, its
// share of the tree, and what the allocator rounds up. TestWeight compares it with the heap.
const entryWeight = 144

// weight returns the memory of an item with so many bytes of its place and its encoding.
func weight(place, body int) int64 { return int64(place + body + entryWeight) }

// memory counts the memory of all items and of their entries in indexes. Safe for concurrent use.
type memory struct {
	most int64 // Config.MaxMemory; 0: no bound
	used atomic.Int64
}

func (m *memory) add(n int64) { m.used.Add(n) }

// reserve counts n bytes if they fit below the bound.
func (m *memory) reserve(n int64) bool {
	if m.used.Add(n) <= m.most {
		return true
	}
	m.used.Add(-n)
	return false
}

func (m *memory) release(n int64) { m.used.Add(-n) }

// Memory is the memory that the items take, in bytes.
type Memory struct {
	Used int64 // of the items and their entries in indexes, with their share of the trees
	Most int64 // Config.MaxMemory; 0: no bound
}

// Memory returns the present figures. It does not wait for durability.
func (s *Store) Memory() Memory { return Memory{Used: s.memory.used.Load(), Most: s.memory.most} }
