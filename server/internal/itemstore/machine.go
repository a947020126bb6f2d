package itemstore

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/google/btree"

	"github.com/runnel-stream/runnel/server/internal/wal"
)

// A snapshot is a version byte, the next table's number, and the tables in the order of their
// numbers. Each table is its number, its description (JSON, after its length), its number of
// items, and the items in the order of their places. Numbers and lengths are varints. Version 2
// appends the number of tokens and the tokens; it is written if a table has indexes or recovery,
// or there are tokens.
const (
	snapshotVersion byte = 1
	snapshotNewest  byte = 2
)

var _ wal.Machine = (*Store)(nil)

// frozenTable is a table's state at one instant.
type frozenTable struct {
	id    uint64
	meta  *Meta
	items *btree.BTreeG[*entry]
}

// Freeze implements wal.Machine. It copies no item: the trees are copied on write from then on.
func (s *Store) Freeze() func(ctx context.Context) ([]byte, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	nextID := s.mu.nextID
	tables := make([]frozenTable, 0, len(s.mu.byID))
	for _, id := range slices.Sorted(maps.Keys(s.mu.byID)) {
		tables = append(tables, s.mu.byID[id].freeze())
	}
	tokens := s.tokens.list()
	return func(ctx context.Context) ([]byte, error) {
		dst, err := encodeSnapshot(ctx, nextID, tables)
		if err != nil {
			return nil, err
		}
		young := func(t frozenTable) bool { return t.meta.young() }
		if len(tokens) == 0 && !slices.ContainsFunc(tables, young) {
			return dst, nil
		}
		dst[0] = snapshotNewest
		dst = binary.AppendUvarint(dst, uint64(len(tokens)))
		for _, token := range tokens {
			dst = appendTokenBody(dst, token)
		}
		return dst, nil
	}
}

func (t *Table) freeze() frozenTable {
	t.mu.Lock() // Clone changes the tree too
	defer t.mu.Unlock()
	return frozenTable{t.id, t.mu.meta, t.mu.items.Clone()}
}

func encodeSnapshot(ctx context.Context, nextID uint64, tables []frozenTable) ([]byte, error) {
	dst := binary.AppendUvarint([]byte{snapshotVersion}, nextID)
	dst = binary.AppendUvarint(dst, uint64(len(tables)))
	for _, t := range tables {
		meta, err := json.Marshal(t.meta)
		if err != nil {
			return nil, fmt.Errorf("encode table %s: %w", t.meta.Name, err)
		}
		dst = appendBytes(binary.AppendUvarint(dst, t.id), string(meta))
		dst = binary.AppendUvarint(dst, uint64(t.items.Len()))
		t.items.Ascend(func(e *entry) bool {
			dst = appendItem(dst, e.item)
			err = ctx.Err()
			return err == nil
		})
		if err != nil {
			return nil, fmt.Errorf("encode table %s: %w", t.meta.Name, err)
		}
	}
	return dst, nil
}

// Restore implements wal.Machine.
func (s *Store) Restore(snapshot []byte) error {
	d := &decoder{rest: snapshot}
	version := d.byte()
	if d.err == nil && (version < snapshotVersion || version > snapshotNewest) {
		return fmt.Errorf("%w: snapshot of version %d, this program knows %d",
			ErrCorrupt, version, snapshotNewest)
	}
	nextID := d.uvarint()
	restored := newStore(s.log)
	for range d.count() {
		if err := restored.restoreTable(d); err != nil {
			return err
		}
	}
	if version > snapshotVersion {
		for range d.count() {
			restored.tokens.add(d.token(), 0)
		}
	}
	if d.err == nil && len(d.rest) > 0 {
		d.fail("bytes after the snapshot")
	}
	if d.err == nil && nextID < restored.mu.nextID {
		d.fail("a table's number is still to come")
	}
	if d.err != nil {
		return fmt.Errorf("restore tables: %w", d.err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.byName, s.mu.byID, s.mu.nextID = restored.mu.byName, restored.mu.byID, nextID
	s.tokens.restore(&restored.tokens)
	return nil
}

func (s *Store) restoreTable(d *decoder) error {
	id, meta := d.uvarint(), d.meta()
	items := d.count()
	if d.err != nil {
		return fmt.Errorf("restore tables: %w", d.err)
	}
	if err := s.apply(change{op: changeCreate, table: id, meta: meta}); err != nil {
		return err
	}
	for range items {
		item := d.item(0)
		if d.err != nil {
			return fmt.Errorf("restore table %s: %w", meta.Name, d.err)
		}
		if err := s.apply(change{op: changePut, table: id, item: item}); err != nil {
			return err
		}
	}
	return nil
}

// Replay implements wal.Machine.
func (s *Store) Replay(at wal.LSN, payload []byte) error {
	if err := decodeFrame(payload, s.apply); err != nil {
		return fmt.Errorf("replay items at %d: %w", at, err)
	}
	return nil
}

// apply repeats a logged change during a replay. No other goroutine runs yet, and replayed frames
// are durable: the entries' LSN stays 0.
func (s *Store) apply(c change) error {
	if c.op == changeToken {
		s.tokens.mu.Lock()
		defer s.tokens.mu.Unlock()
		s.tokens.add(c.token, 0)
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.op == changeCreate {
		name := tableName{c.meta.World, c.meta.Name}
		if s.mu.byID[c.table] != nil || s.mu.byName[name] != nil {
			return fmt.Errorf("%w: table %d, %s, is there already",
				ErrCorrupt, c.table, c.meta.Name)
		}
		s.insert(newTable(c.table, c.meta), 0)
		return nil
	}
	t := s.mu.byID[c.table]
	if t == nil {
		return fmt.Errorf("%w: there is no table %d", ErrCorrupt, c.table)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	switch c.op {
	case changeDrop:
		s.remove(t, 0)
	case changeAlter:
		t.mu.meta = c.meta
		t.reindex()
	case changePut:
		key, err := t.schema.Key(c.item)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrCorrupt, err)
		}
		t.put(&entry{place: key.place(), item: c.item, size: Size(c.item)})
	case changeDelete:
		if err := t.schema.check(c.key); err != nil {
			return fmt.Errorf("%w: %w", ErrCorrupt, err)
		}
		t.remove(c.key.entry(), 0)
	}
	return nil
}
