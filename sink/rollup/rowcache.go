package rollup

import (
	"container/list"
	"sync"
)

// rowCache has the rows that this process wrote last, up to a number of bytes. A cached row may be
// out of date. A write then conflicts, and a shard's entry in it is still one that the row has
// reached, since entries only rise. So a stale row costs a read and does no harm. It is safe for
// concurrent use.
type rowCache struct {
	limit int // in bytes

	mu    sync.Mutex
	bytes int
	byKey map[string]*list.Element // of *cachedRow
	order *list.List               // the row that was used last is in front
}

type cachedRow struct {
	row  StoredRow
	size int
}

func newRowCache(limit int) *rowCache {
	return &rowCache{limit: limit, byKey: map[string]*list.Element{}, order: list.New()}
}

// get returns a row, which the caller does not change.
func (c *rowCache) get(key string) (row StoredRow, found bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	element, found := c.byKey[key]
	if !found {
		return StoredRow{}, false
	}
	c.order.MoveToFront(element)
	return element.Value.(*cachedRow).row, true
}

// put takes a row, which the caller does not change any more.
func (c *rowCache) put(row StoredRow, size int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.remove(row.Key)
	c.byKey[row.Key] = c.order.PushFront(&cachedRow{row, size})
	for c.bytes += size; c.bytes > c.limit; {
		c.remove(c.order.Back().Value.(*cachedRow).row.Key)
	}
}

func (c *rowCache) forget(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.remove(key)
}

func (c *rowCache) remove(key string) {
	if element, found := c.byKey[key]; found {
		c.order.Remove(element)
		c.bytes -= element.Value.(*cachedRow).size
		delete(c.byKey, key)
	}
}
