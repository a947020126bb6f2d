package itemstore

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/runnel-stream/runnel/server/internal/wal"
)

// A snapshot is a version byte, the next table's number, and the tables in the order of their
// numbers. Each table is its number, its description (JSON, after its length), its number of
// items, and the items in the order of their places. Numbers and lengths are varints. Version 2
// appends the number of tokens and the tokens; it is written if a table has indexes or recovery,
// or there are tokens.
//
// Version 3 is that of a store with data files. Its tables have no items, and behind the tokens
// follow
//
//	the next file's number
//	the number of files; of each its number, length, index's length and index's checksum
//	the sweep: its phase, the number of files that it drops, and the table and place to go on at
//	the number of places that the sweep left out since they have changed, and the places
//	the number of records in the tail, and the records
//
// The files' records and the tail's, in this order, are the items: the last record of a place
// counts.
const (
	snapshotVersion byte = 1
	snapshotYoung   byte = 2
	snapshotFiles   byte = 3
	snapshotNewest       = snapshotFiles
)

// freeze is the store's state at one instant, apart from the items.
type freeze struct {
	nextID uint64
	tables []frozenTable
	tokens []Token
	lsn    wal.LSN // no frame is later
	stored int64   // the bytes of all items
	whole  bool    // the changes are all items
}

type frozenTable struct {
	id   uint64
	of   *Table
	meta *Meta
}

// freeze returns the state, and adds the changes since the last call to the chain. The caller
// excludes all writers.
func (s *Store) freeze() *freeze {
	s.mu.RLock()
	defer s.mu.RUnlock()
	f := &freeze{nextID: s.mu.nextID, tokens: s.tokens.list(), lsn: s.mu.changed}
	for _, id := range slices.Sorted(maps.Keys(s.mu.byID)) {
		t := s.mu.byID[id]
		t.mu.RLock()
		f.tables = append(f.tables, frozenTable{id, t, t.mu.meta})
		f.lsn = max(f.lsn, t.mu.changed)
		f.stored += t.mu.stored
		t.mu.RUnlock()
	}
	// A store that became small needs no files any more. All of its items fit into the tail.
	f.whole = len(s.chain.list) > 0 && f.stored <= s.chain.limits.tail/4
	for _, t := range f.tables {
		if dirty := t.of.takeChanges(f.whole); len(dirty) > 0 {
			s.chain.frozen = append(s.chain.frozen, frozenChanges{t.id, dirty})
		}
	}
	return f
}

// takeChanges returns the changes since the last call, or with all every item besides.
func (t *Table) takeChanges(all bool) map[string]*entry {
	t.mu.Lock()
	defer t.mu.Unlock()
	if all {
		t.mu.items.Ascend(func(e *entry) bool {
			t.mark(e)
			return true
		})
	}
	dirty := t.mu.dirty
	t.mu.dirty = nil
	return dirty
}

// sliceStep is the number of items that a sweep reads at a time, so that it keeps a table locked
// for microseconds.
const sliceStep = 256

// slice returns the present records from the sweep's place on, of about size bytes, and where the
// sweep goes on. It leaves out those that changed since the freeze, also by a deletion, and returns
// the places of all such changes. Their older values are in the files that the sweep will drop.
// Before it drops these, the next snapshot has the changes; or a crash has lost them, and then a
// start adds the places to its own changes.
func (f *freeze) slice(at sweep, size int64) (records []record, left []spot, next sweep) {
	for _, t := range f.tables {
		if t.id < at.table {
			continue
		}
		if t.id > at.table {
			at.table, at.place = t.id, ""
		}
		begin, more := at.place, true
		for size > 0 && more {
			var part []*entry
			part, more = t.of.from(at.place, sliceStep)
			for _, e := range part {
				at.place = e.place + "\x00"
				if e.lsn > f.lsn {
					continue
				}
				r := record{t.id, e}
				records = append(records, r)
				size -= r.length()
			}
		}
		if more {
			return records, append(left, t.of.changedIn(begin, at.place)...), at
		}
		left = append(left, t.of.changedIn(begin, "")...)
		at.table, at.place = t.id+1, ""
	}
	at.phase, at.table, at.place = sweepDone, 0, ""
	return records, left, at
}

// changedIn returns the places in [low, high) that changed since the last Freeze; high "" means no
// upper bound.
func (t *Table) changedIn(low, high string) (changed []spot) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	for place := range t.mu.dirty {
		if low <= place && (high == "" || place < high) {
			changed = append(changed, spot{t.id, place})
		}
	}
	return changed
}

// from returns the next n entries from a place on, and whether there may be more.
func (t *Table) from(place string, n int) (part []*entry, more bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	part = make([]*entry, 0, n)
	t.mu.items.AscendGreaterOrEqual(&entry{place: place}, func(e *entry) bool {
		part = append(part, e)
		return len(part) < n
	})
	return part, len(part) == n
}

// encodeAll returns the snapshot of a store without files. records are all items, in order.
func (f *freeze) encodeAll(records []record) ([]byte, error) {
	dst := f.header(snapshotVersion)
	young := len(f.tokens) > 0
	for _, t := range f.tables {
		var err error
		if dst, err = t.appendMeta(dst); err != nil {
			return nil, err
		}
		young = young || t.meta.young()
		n := 0
		for n < len(records) && records[n].table == t.id {
			n++
		}
		dst = binary.AppendUvarint(dst, uint64(n))
		for _, r := range records[:n] {
			dst = append(dst, r.body...)
		}
		records = records[n:]
	}
	if young {
		dst[0] = snapshotYoung
		dst = f.appendTokens(dst)
	}
	return dst, nil
}

// encode returns the snapshot of a store with files.
func (f *freeze) encode(c *chain, tail []record) ([]byte, error) {
	dst := f.header(snapshotFiles)
	for _, t := range f.tables {
		var err error
		if dst, err = t.appendMeta(dst); err != nil {
			return nil, err
		}
	}
	dst = binary.AppendUvarint(f.appendTokens(dst), c.next)
	dst = binary.AppendUvarint(dst, uint64(len(c.list)))
	for _, file := range c.list {
		for _, n := range []uint64{
			file.id, uint64(file.size), uint64(file.index), uint64(file.sum),
		} {
			dst = binary.AppendUvarint(dst, n)
		}
	}
	dst = append(dst, byte(c.sweep.phase))
	dst = binary.AppendUvarint(dst, uint64(c.sweep.from))
	dst = appendBytes(binary.AppendUvarint(dst, c.sweep.table), c.sweep.place)
	dst = binary.AppendUvarint(dst, uint64(len(c.left)))
	for _, at := range c.left {
		dst = appendBytes(binary.AppendUvarint(dst, at.table), at.place)
	}
	dst = binary.AppendUvarint(dst, uint64(len(tail)))
	for _, r := range tail {
		dst = r.append(dst)
	}
	return dst, nil
}

func (f *freeze) header(version byte) []byte {
	dst := binary.AppendUvarint([]byte{version}, f.nextID)
	return binary.AppendUvarint(dst, uint64(len(f.tables)))
}

func (f *freeze) appendTokens(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(f.tokens)))
	for _, token := range f.tokens {
		dst = appendTokenBody(dst, token)
	}
	return dst
}

func (t frozenTable) appendMeta(dst []byte) ([]byte, error) {
	meta, err := json.Marshal(t.meta)
	if err != nil {
		return nil, fmt.Errorf("encode table %s: %w", t.meta.Name, err)
	}
	return appendBytes(binary.AppendUvarint(dst, t.id), string(meta)), nil
}

// manifest is the part of a snapshot that names the files.
type manifest struct {
	next  uint64
	list  []dataFile
	sweep sweep
}

func (d *decoder) manifest() manifest {
	m := manifest{next: d.uvarint()}
	for range d.count() {
		m.list = append(m.list, dataFile{
			id: d.uvarint(), size: d.length(), index: d.length(), sum: uint32(d.uvarint()),
		})
	}
	phase, from := d.byte(), d.uvarint()
	if phase >= byte(sweepPhases) || from > uint64(len(m.list)) {
		d.fail("bad state of a sweep")
		return manifest{}
	}
	m.sweep = sweep{sweepPhase(phase), int(from), d.uvarint(), d.text()}
	for _, file := range m.list {
		if file.id >= m.next || file.index > file.size/2 {
			d.fail("bad name of a file")
		}
	}
	return m
}

// length reads the length of a file or a part of one.
func (d *decoder) length() int64 {
	n := d.uvarint()
	if n > 1<<50 {
		d.fail("a length beyond every disk")
		return 0
	}
	return int64(n)
}
