package itemstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/runnel-stream/runnel/server/internal/wal"
)

var _ wal.Machine = (*Store)(nil)

// Freeze implements wal.Machine. It copies no item, and takes the changes of each table as a whole.
func (s *Store) Freeze() func(ctx context.Context) ([]byte, error) {
	f := s.freeze()
	return func(ctx context.Context) ([]byte, error) { return s.chain.snapshot(ctx, f) }
}

// Restore implements wal.Machine, as a wal.FileKeeper.
func (s *Store) Restore(snapshot []byte) error {
	restored := newStore(s.cfg)
	if err := restored.restore(snapshot); err != nil {
		var corrupt *wal.CorruptError
		if errors.As(err, &corrupt) {
			return corrupt
		}
		return fmt.Errorf("restore tables: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.byName, s.mu.byID, s.mu.nextID = restored.mu.byName, restored.mu.byID,
		restored.mu.nextID
	restored.memory.found = restored.memory.used.Load()
	s.memory, s.chain, s.lost = restored.memory, restored.chain, restored.lost
	s.tokens.restore(&restored.tokens)
	return nil
}

// restore reads a snapshot into an empty store.
func (s *Store) restore(snapshot []byte) error {
	d, version, err := openSnapshot(snapshot)
	if err != nil {
		return err
	}
	nextID := d.uvarint()
	for range d.count() {
		if err := s.restoreTable(d, version); err != nil {
			return err
		}
	}
	if version > snapshotVersion {
		for range d.count() {
			s.tokens.add(d.token(), 0)
		}
	}
	if version == snapshotFiles {
		if err := s.restoreFiles(d); err != nil {
			return err
		}
	}
	if d.err == nil && len(d.rest) > 0 {
		d.fail("bytes after the snapshot")
	}
	if d.err == nil && nextID < s.mu.nextID {
		d.fail("a table's number is still to come")
	}
	s.mu.nextID = nextID
	return d.err
}

func openSnapshot(snapshot []byte) (*decoder, byte, error) {
	d := &decoder{rest: string(snapshot)}
	version := d.byte()
	if d.err == nil && (version < snapshotVersion || version > snapshotNewest) {
		return nil, 0, fmt.Errorf("%w: snapshot of version %d, this program knows %d",
			ErrCorrupt, version, snapshotNewest)
	}
	return d, version, nil
}

func (s *Store) restoreTable(d *decoder, version byte) error {
	id, meta := d.uvarint(), d.meta()
	items := 0
	if version != snapshotFiles {
		items = d.count()
	}
	if d.err != nil {
		return d.err
	}
	if err := s.apply(change{op: changeCreate, table: id, meta: meta}); err != nil {
		return err
	}
	for range items {
		item, body := d.encoded()
		if d.err != nil {
			return fmt.Errorf("table %s: %w", meta.Name, d.err)
		}
		c := change{op: changePut, table: id, item: item, body: body}
		if err := s.apply(c); err != nil {
			return err
		}
	}
	return nil
}

// restoreFiles reads the files that the snapshot names, and then its tail.
func (s *Store) restoreFiles(d *decoder) error {
	m := d.manifest()
	if d.err != nil {
		return d.err
	}
	s.chain.next, s.chain.list, s.chain.sweep = m.next, m.list, m.sweep
	s.chain.named = map[uint64]bool{}
	for _, file := range m.list {
		s.chain.named[file.id] = true
	}
	s.chain.before = s.chain.named
	if err := s.load(m.list); err != nil {
		return err
	}
	for range d.count() {
		if t := s.mu.byID[d.uvarint()]; t != nil {
			if e := t.find(&entry{place: d.text()}); e != nil {
				t.mark(e)
			}
		}
	}
	for range d.count() {
		if err := s.restoreRecord(d.record()); err != nil {
			return err
		}
	}
	return d.err
}

// restoreRecord applies a record of the tail. It stays in the tail.
func (s *Store) restoreRecord(r record) error {
	t := s.mu.byID[r.table]
	if t == nil {
		return fmt.Errorf("%w: there is no table %d", ErrCorrupt, r.table)
	}
	if r.body == "" {
		t.remove(r.entry, 0)
		t.mark(newEntry(r.place, "", 0)) // also if a file's record would come back only later
		return nil
	}
	if err := t.check(r); err != nil {
		return err
	}
	t.put(newEntry(r.place, r.body, r.size))
	return nil
}

// check decodes a record, and compares its place and size.
func (t *Table) check(r record) error {
	d := &decoder{rest: r.body}
	item := d.item(0)
	if d.err == nil && len(d.rest) > 0 {
		d.fail("bytes after an item")
	}
	if d.err != nil {
		return d.err
	}
	key, err := t.schema.Key(item)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	if key.place() != r.place || Size(item) != r.size {
		return fmt.Errorf("%w: an item of another place or size", ErrCorrupt)
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
		s.insert(newTable(c.table, c.meta, s.memory), 0)
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
		t.put(newEntry(key.place(), c.body, Size(c.item)))
	case changeDelete:
		if err := t.schema.check(c.key); err != nil {
			return fmt.Errorf("%w: %w", ErrCorrupt, err)
		}
		t.remove(c.key.entry(), 0)
	}
	return nil
}
