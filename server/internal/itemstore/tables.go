package itemstore

import (
	"context"

	"github.com/runnel-stream/runnel/server/internal/wal"
)

// tableRoom is the size of a frame about a table, as passed to the log: names, tags and indexes
// are bounded.
const tableRoom = 256 << 10

// dropRoom is that of the frame that drops a table.
const dropRoom = 128

// CreateTable makes a table, durably. meta.Schema must be valid. The table keeps Tags, which must
// not change. Errors: ErrTableExists, ErrTooManyTables, or the log's.
func (s *Store) CreateTable(ctx context.Context, meta Meta) (*Table, error) {
	var t *Table
	err := s.decide(ctx, tableRoom, func(tx *wal.Tx) (wal.LSN, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if err := s.roomFor(&meta); err != nil {
			return s.mu.changed, err
		}
		t = newTable(s.mu.nextID, &meta, s.memory)
		frame, err := appendMeta(newFrame(nil), changeCreate, t.id, &meta)
		if err != nil {
			return 0, err
		}
		lsn := tx.Append(wal.KindItems, frame, nil)
		t.mu.changed, t.mu.removed, t.mu.altered = lsn, lsn, lsn
		s.insert(t, lsn)
		return lsn, nil
	})
	if err != nil {
		return nil, err
	}
	return t, nil
}

func (s *Store) roomFor(meta *Meta) error {
	if s.mu.byName[tableName{meta.World, meta.Name}] != nil {
		return ErrTableExists
	}
	tables := 0
	for key := range s.mu.byName {
		if key.world == meta.World {
			tables++
		}
	}
	if tables >= MaxTables {
		return ErrTooManyTables
	}
	return nil
}

// insert adds the table to the store. The lock is held.
func (s *Store) insert(t *Table, lsn wal.LSN) {
	s.mu.byName[tableName{t.mu.meta.World, t.mu.meta.Name}] = t
	s.mu.byID[t.id] = t
	s.mu.nextID = max(s.mu.nextID, t.id+1)
	s.mu.changed = lsn
}

// DropTable removes a table and its items, durably, and returns its last state. Before that it
// calls allow, which may refuse; allow must be pure and runs at most once. Errors: allow's,
// ErrTableNotFound, or the log's.
func (s *Store) DropTable(
	ctx context.Context, t *Table, allow func(Stats) error,
) (Stats, error) {
	var last Stats
	err := s.decideBy(ctx, s.log.SequenceFreeing, dropRoom, func(tx *wal.Tx) (wal.LSN, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.mu.dropped {
			return t.mu.changed, ErrTableNotFound
		}
		last = t.statsLocked()
		if err := allow(last); err != nil {
			return t.mu.changed, err
		}
		lsn := logged(tx, func(frame []byte) []byte {
			return appendChange(frame, changeDrop, t.id)
		})
		s.remove(t, lsn)
		return lsn, nil
	})
	return last, err
}

// remove removes the table from the store. Both locks are held.
func (s *Store) remove(t *Table, lsn wal.LSN) {
	delete(s.mu.byName, tableName{t.mu.meta.World, t.mu.meta.Name})
	delete(s.mu.byID, t.id)
	s.mu.changed = lsn
	t.mu.dropped = true
	t.mu.changed, t.mu.removed, t.mu.altered = lsn, lsn, lsn
	t.memory.add(-t.mu.weight)
	for _, x := range t.mu.indexes {
		t.memory.add(-x.held)
	}
	t.mu.items.Clear(false)
	t.mu.indexes, t.mu.dirty = nil, nil
	t.mu.bytes, t.mu.stored, t.mu.weight = 0, 0, 0
}

// AlterTable replaces the table's description by the result of fn, durably, and returns the new
// state. It fills new indexes before that. fn must be pure and runs at most once. It must not
// change World, Name, ID, Created or Schema, nor any value in place. Errors: fn's,
// ErrTableNotFound, or the log's.
func (s *Store) AlterTable(
	ctx context.Context, t *Table, fn func(Stats) (Meta, error),
) (Stats, error) {
	var altered Stats
	err := s.decide(ctx, tableRoom, func(tx *wal.Tx) (wal.LSN, error) {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.mu.dropped {
			return t.mu.changed, ErrTableNotFound
		}
		meta, err := fn(t.statsLocked())
		if err != nil {
			return t.mu.changed, err
		}
		frame, err := appendMeta(newFrame(nil), changeAlter, t.id, &meta)
		if err != nil {
			return t.mu.changed, err
		}
		lsn := tx.Append(wal.KindItems, frame, nil)
		t.mu.meta, t.mu.changed, t.mu.altered = &meta, lsn, lsn
		t.reindex()
		altered = t.statsLocked()
		return lsn, nil
	})
	return altered, err
}
