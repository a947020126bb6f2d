package itemstore

import (
	"context"

	"github.com/runnel-stream/runnel/server/internal/wal"
)

// Written is the result of a write. It holds the items in their stored form: an item of many short
// values takes a hundred times as much memory once it is decoded, and a write waits for the disk.
type Written struct {
	OldSize, NewSize int // as Size counts; 0 for no item
	// The indexes that the write changed; nil if there are none.
	Indexes []IndexChange

	old, next *entry // nil: none
}

// Old returns the item before the write; nil if there was none.
func (w Written) Old() Item { return w.old.decoded() }

// New returns the item after the write; nil if there is none.
func (w Written) New() Item { return w.next.decoded() }

func (e *entry) decoded() Item {
	if e == nil {
		return nil
	}
	return e.item()
}

// Update decides on one item and changes it, durably. fn gets the present item (nil if there is
// none) and returns the next one (nil to delete it). fn runs at most once, with the table locked:
// it must be pure and quick, and must change neither its argument nor the key. Update writes fn's
// result even if it equals the old item; after an error of fn the item does not change. While
// Update waits it holds neither fn nor a decoded item.
//
// room is an estimate of the bytes that fn may add to the item. Update returns once the new state
// is durable, or, without a change, once the state that fn saw is durable. It then returns an
// error of fn unchanged, together with the old item. Other errors: ErrKey, ErrItemTooLarge,
// ErrItemTooDeep, ErrItemsMemory, an *IndexKeyError, ErrTableNotFound, and the log's, after which
// the outcome is unknown and Written is empty.
func (s *Store) Update(
	ctx context.Context, t *Table, key Key, room int, fn func(old Item) (Item, error),
) (Written, error) {
	if err := t.schema.check(key); err != nil {
		return Written{}, err
	}
	d := decision{table: t, key: key, entry: key.entry()}
	size := room + t.sizeAt(d.entry)
	return s.commit(ctx, s.log.Sequence, size, &d, fn)
}

// deleteRoom is the size of a frame that deletes an item, as passed to the log: keys have at most
// 3 KiB.
const deleteRoom = 4 << 10

// Delete deletes an item, as Update does if its fn returns nil. It works on a full disk too. allow
// may refuse.
func (s *Store) Delete(
	ctx context.Context, t *Table, key Key, allow func(old Item) error,
) (Written, error) {
	if err := t.schema.check(key); err != nil {
		return Written{}, err
	}
	d := decision{table: t, key: key, entry: key.entry()}
	return s.commit(ctx, s.log.SequenceFreeing, deleteRoom, &d, func(old Item) (Item, error) {
		return nil, allow(old)
	})
}

// commit makes the decision and its change, durably.
func (s *Store) commit(
	ctx context.Context, by sequence, size int, d *decision, fn func(old Item) (Item, error),
) (Written, error) {
	t := d.table
	err := s.decideBy(ctx, by, size, func(tx *wal.Tx) (wal.LSN, error) {
		t.mu.Lock()
		defer t.mu.Unlock()
		d.make(fn)
		if d.err == nil {
			var g growth
			g.add(d)
			d.err = g.reserve(t.memory)
			defer g.release(t.memory)
		}
		if !d.writes() {
			return d.seen, nil
		}
		lsn := logged(tx, d.append)
		d.apply(lsn)
		return lsn, nil
	})
	if err != nil {
		return Written{}, err
	}
	return d.Written, d.err
}

// sizeAt estimates the encoded size of the present item at an entry's place.
func (t *Table) sizeAt(at *entry) int {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if e := t.find(at); e != nil {
		return 2 * e.size
	}
	return 0
}

// Get returns the newest item of the key, once it is durable; nil if there is none. Errors:
// ErrKey, ErrTableNotFound, or the log's.
func (s *Store) Get(ctx context.Context, t *Table, key Key) (Item, error) {
	if err := t.schema.check(key); err != nil {
		return nil, err
	}
	item, lsn, err := t.get(key.entry())
	if err := s.shown(ctx, lsn, err); err != nil {
		return nil, err
	}
	return item, nil
}

// SizeNow returns the size of the item with a key, or 0 without one. It decodes nothing, and does
// not wait until the item is durable.
func (t *Table) SizeNow(key Key) int {
	if t.schema.check(key) != nil {
		return 0
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	if e := t.find(key.entry()); e != nil {
		return e.size
	}
	return 0
}

func (t *Table) get(at *entry) (Item, wal.LSN, error) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if t.mu.dropped {
		return nil, t.mu.changed, ErrTableNotFound
	}
	if e := t.find(at); e != nil {
		return e.item(), e.lsn, nil
	}
	return nil, t.mu.removed, nil
}
