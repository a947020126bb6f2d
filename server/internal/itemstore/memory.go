package itemstore

import (
	"errors"
	"sync/atomic"
)

// ErrItemsMemory is returned for a write that would take more memory than Config.MaxMemory.
var ErrItemsMemory = errors.New("the items take as much memory as they may")

// entryWeight is the memory that an item takes besides its place and its encoding: the entry, and
// its share of the tree.
const entryWeight = 96

// weight returns the memory of an item with so many bytes of its place and its encoding. The
// allocator rounds their sum up, by a sixteenth on average. TestWeight compares it with the heap.
func weight(place, body int) int64 {
	stored := place + body
	return int64(stored + stored/16 + entryWeight)
}

// memory counts the memory of all items and of their entries in indexes. Safe for concurrent use.
type memory struct {
	most  int64 // Config.MaxMemory; 0: no bound
	found int64 // by the start
	used  atomic.Int64
}

// small returns the bound of small growth: see decision.reserve. A start may find more items than
// the bound allows, and their leases are renewed too.
func (m *memory) small() int64 {
	bound := max(m.most, m.found)
	return bound + bound/16
}

func (m *memory) add(n int64) { m.used.Add(n) }

// reserve counts n bytes if the sum is at most most then.
func (m *memory) reserve(n, most int64) bool {
	if m.used.Add(n) <= most {
		return true
	}
	m.used.Add(-n)
	return false
}

func (m *memory) release(n int64) { m.used.Add(-n) }

// smallGrowth is the growth of an item, in bytes, that may use the last part of the memory.
const smallGrowth = 256

// growth is the memory by which the decisions of a write grow the tables together. A transaction
// may add as much as it removes.
type growth struct {
	sum      int64
	large    bool // of an item
	reserved int64
}

func (g *growth) add(d *decision) {
	g.sum += d.grown
	g.large = g.large || d.grown > smallGrowth || d.grown > 0 && d.old == nil
}

// reserve reserves the memory. A write that grows nothing needs none, and so goes on however much
// is in use. The renewal of a lease must go on, too, and grows its item when the counter gets a
// digit or the checkpoint becomes a number. So items that are there may grow a little in a
// sixteenth beyond the bound.
func (g *growth) reserve(m *memory) error {
	if m.most == 0 || g.sum <= 0 {
		return nil
	}
	most := m.small()
	if g.large {
		most = m.most
	}
	if !m.reserve(g.sum, most) {
		return ErrItemsMemory
	}
	g.reserved = g.sum
	return nil
}

// release ends the reservation: the change was made, and counts itself, or it is not made.
func (g *growth) release(m *memory) { m.release(g.reserved) }

// Memory is the memory that the items take, in bytes.
type Memory struct {
	Used int64 // of the items and their entries in indexes, with their share of the trees
	Most int64 // Config.MaxMemory; 0: no bound
}

// Memory returns the present figures. It does not wait for durability.
func (s *Store) Memory() Memory { return Memory{Used: s.memory.used.Load(), Most: s.memory.most} }
