package itemstore

import "sync"

// Held counts the memory of a table's items. The store's callers compute and add it. It is safe for
// concurrent use.
type Held struct {
	mu    sync.Mutex
	bytes int64
	ended bool
}

// Add adds bytes, or subtracts them below 0, and returns what it has counted. After End it counts
// nothing: a write may end later than the removal of its table.
func (h *Held) Add(bytes int64) (counted int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended {
		return 0
	}
	h.bytes += bytes
	return bytes
}

// End returns the sum once the table was removed.
func (h *Held) End() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ended = true
	return h.bytes
}
