package itemstore

import "github.com/runnel-stream/runnel/server/internal/wal"

// decision is the decision about one item. Its methods need the table's lock.
type decision struct {
	table *Table
	key   Key
	entry *entry // the search key for the present entry

	Written
	grown int64   // of the items' memory, if that has a bound
	fixed bool    // the item must not change
	err   error   // of the decision: the item does not change
	seen  wal.LSN // of the frame that made the item that fn saw
}

// make calls fn once to get the item's next state.
func (d *decision) make(fn func(old Item) (Item, error)) {
	t := d.table
	if t.mu.dropped {
		d.seen, d.err = t.mu.changed, ErrTableNotFound
		return
	}
	d.seen = t.mu.removed
	if d.old = t.find(d.entry); d.old != nil {
		d.OldSize, d.seen = d.old.size, d.old.lsn
	}
	old := d.Old()
	next, err := fn(old)
	if d.fixed {
		d.next, d.NewSize, next = d.old, d.OldSize, nil
	}
	if err == nil && next != nil {
		err = d.accept(old, next)
	}
	if err == nil && !d.fixed && t.memory.most > 0 {
		d.grown = d.growth(old, next)
	}
	d.err = err
}

// growth returns the memory by which the write grows the table; below 0 if it shrinks it.
func (d *decision) growth(old, next Item) int64 {
	grown := d.next.weight() - d.old.weight()
	for _, x := range d.table.mu.indexes {
		grown += x.growth(d.entry.place, old, next)
	}
	return grown
}

// accept checks that the store can hold the item under its key.
func (d *decision) accept(old, next Item) error {
	key, err := d.table.schema.Key(next)
	if err != nil {
		return err
	}
	if !key.equal(d.key) {
		return ErrKey
	}
	size := Size(next)
	if size > MaxItemSize {
		return ErrItemTooLarge
	}
	if levels(next)-1 > MaxDepth { // the item itself is none
		return ErrItemTooDeep
	}
	for _, x := range d.table.mu.indexes {
		if err := x.check(old, next); err != nil {
			return err
		}
	}
	d.NewSize, d.next = size, encodeEntry(d.entry.place, next, size)
	return nil
}

// encodeEntry returns the entry of an item.
func encodeEntry(place string, item Item, size int) *entry {
	buffer := frames.Get().(*[]byte)
	*buffer = appendItem(append((*buffer)[:0], place...), item)
	whole := string(*buffer)
	frames.Put(buffer)
	return &entry{place: whole[:len(place)], body: whole[len(place):], size: size}
}

// writes reports whether the decision changes anything.
func (d *decision) writes() bool {
	return d.err == nil && !d.fixed && (d.old != nil || d.next != nil)
}

// append appends the change to a frame.
func (d *decision) append(frame []byte) []byte {
	if d.next == nil {
		return appendDelete(frame, d.table.id, d.key)
	}
	return appendPut(frame, d.table.id, d.next.body)
}

// apply makes the change, whose frame ends at lsn.
func (d *decision) apply(lsn wal.LSN) {
	if d.next == nil {
		d.Indexes = d.table.remove(d.entry, lsn)
		return
	}
	d.next.lsn = lsn
	d.Indexes = d.table.put(d.next)
}
