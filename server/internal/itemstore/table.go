package itemstore

import (
	"strings"
	"sync"

	"github.com/google/btree"

	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/server/internal/wal"
)

// Meta describes a table without its items. The store uses only the schema and the indexes; it
// keeps the other fields for its callers.
type Meta struct {
	World              wire.World
	Name               string
	ID                 string // a UUID; a table created again gets another one
	Created            int64  // ms since 1970
	Schema             Schema
	BillingMode        string            `json:",omitempty"` // PROVISIONED or PAY_PER_REQUEST
	ReadCapacity       int64             `json:",omitempty"` // units per second, if provisioned
	WriteCapacity      int64             `json:",omitempty"` // units per second, if provisioned
	DeletionProtection bool              `json:",omitempty"`
	Tags               map[string]string `json:",omitempty"`
	Indexes            []Index           `json:",omitempty"` // names are unique
	// Recovery holds the request for point-in-time recovery. The server only reports it.
	Recovery *Recovery `json:",omitempty"`
}

// Recovery is the setting of UpdateContinuousBackups.
type Recovery struct {
	Since int64 // ms since 1970
	Days  int64
}

// young reports whether binaries that know only version 1 would misread the description.
func (m *Meta) young() bool { return len(m.Indexes) > 0 || m.Recovery != nil }

// Table is one table. It stays usable after it was dropped: every operation then returns
// ErrTableNotFound. Safe for concurrent use.
type Table struct {
	id     uint64 // never used twice
	schema Schema
	units  Units
	memory *memory

	mu struct {
		sync.RWMutex
		meta   *Meta // replaced, never changed
		items  *btree.BTreeG[*entry]
		bytes  int64 // sum of the items' sizes
		stored int64 // sum of the lengths of their places and encodings
		weight int64 // sum of their weights
		// dirty holds the changes since the last Freeze, by place: the newest entry, or one without
		// an item.
		dirty map[string]*entry
		// In the order of the description.
		indexes []*secondary
		// The frames that made the state; readers wait for them.
		changed wal.LSN // the newest frame of the table
		removed wal.LSN // the newest one that removed an item, or that created the table
		altered wal.LSN // the newest one that created or altered the table
		dropped bool
	}
}

// entry is an item at its place. Entries are replaced, never changed. An item is kept as its
// encoding and decoded for each use: a decoded one takes more memory, in a dozen pieces that every
// garbage collection visits. One string holds place and body.
type entry struct {
	place string
	body  string  // the item's encoding; "": no item
	size  int     // as Size counts
	lsn   wal.LSN // of the frame that put it
}

func newEntry(place, body string, size int) *entry {
	whole := place + body
	return &entry{place: whole[:len(place)], body: whole[len(place):], size: size}
}

// item returns the item; nil if there is none.
func (e *entry) item() Item {
	if e == nil || e.body == "" {
		return nil
	}
	return decodeItem(e.body)
}

// decodeItem returns the item of an encoding that was checked before.
func decodeItem(body string) Item {
	d := &decoder{rest: body}
	return d.item(0)
}

// stored returns the number of the entry's bytes.
func (e *entry) stored() int64 { return int64(len(e.place) + len(e.body)) }

// weight returns the memory that the entry takes.
func (e *entry) weight() int64 {
	if e == nil {
		return 0
	}
	return weight(len(e.place), len(e.body))
}

// entry returns an entry without an item, at the key's place.
func (k Key) entry() *entry { return &entry{place: k.place()} }

func before(a, b *entry) bool { return a.place < b.place }

// treeDegree gives nodes of up to 63 items: a copy-on-write then copies half a kilobyte.
const treeDegree = 32

func newTable(id uint64, meta *Meta, memory *memory) *Table {
	t := &Table{id: id, schema: meta.Schema, memory: memory}
	t.mu.meta = meta
	t.mu.items = btree.NewG(treeDegree, before)
	t.reindex()
	return t
}

// Schema returns the table's primary key. It never changes.
func (t *Table) Schema() Schema { return t.schema }

// Units returns the table's counters.
func (t *Table) Units() *Units { return &t.units }

// Stats describes a table at one instant.
type Stats struct {
	Meta    Meta         // Tags, Indexes and Recovery are shared and must not be changed
	Items   int64        // number of items
	Bytes   int64        // sum of their sizes
	Indexes []IndexStats // of Meta.Indexes, in their order

	ReadUnits, WriteUnits float64 // see Units
}

// stats returns the newest state and the frame to wait for before showing it.
func (t *Table) stats() (Stats, wal.LSN, error) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if t.mu.dropped {
		return Stats{}, t.mu.changed, ErrTableNotFound
	}
	return t.statsLocked(), t.mu.changed, nil
}

func (t *Table) statsLocked() Stats {
	stats := Stats{Meta: *t.mu.meta, Items: int64(t.mu.items.Len()), Bytes: t.mu.bytes}
	stats.ReadUnits, stats.WriteUnits = t.units.Total()
	for _, x := range t.mu.indexes {
		stats.Indexes = append(stats.Indexes, IndexStats{int64(x.tree.Len()), x.bytes})
	}
	return stats
}

// find returns the present entry at the same place, or nil. The lock is held.
func (t *Table) find(at *entry) *entry {
	found, _ := t.mu.items.Get(at)
	return found
}

// put stores an entry at its place and returns the changed indexes. The lock is held.
func (t *Table) put(e *entry) []IndexChange {
	old, _ := t.mu.items.ReplaceOrInsert(e)
	t.count(old, e)
	t.mark(e)
	t.mu.changed = e.lsn
	return t.follow(e.place, old, e)
}

// remove removes the present entry at the same place, if any. The lock is held.
func (t *Table) remove(at *entry, lsn wal.LSN) []IndexChange {
	t.mu.changed, t.mu.removed = lsn, lsn
	old, found := t.mu.items.Delete(at)
	if !found {
		return nil
	}
	t.count(old, nil)
	t.mark(&entry{place: strings.Clone(at.place), lsn: lsn})
	return t.follow(at.place, old, nil)
}

// count adds an entry to the sums, and takes away the one before it; nil: none.
func (t *Table) count(old, next *entry) {
	if old != nil {
		t.mu.bytes -= int64(old.size)
		t.mu.stored -= old.stored()
	}
	if next != nil {
		t.mu.bytes += int64(next.size)
		t.mu.stored += next.stored()
	}
	grown := next.weight() - old.weight()
	t.mu.weight += grown
	t.memory.add(grown)
}

// mark records a change for the next snapshot.
func (t *Table) mark(e *entry) {
	if t.mu.dirty == nil {
		t.mu.dirty = map[string]*entry{}
	}
	t.mu.dirty[e.place] = e
}

// follow updates the indexes after a write.
func (t *Table) follow(place string, old, next *entry) []IndexChange {
	if len(t.mu.indexes) == 0 {
		return nil
	}
	var changes []IndexChange
	was, is := old.item(), next.item()
	for _, x := range t.mu.indexes {
		if change, changed := x.replace(place, was, is); changed {
			changes = append(changes, change)
		}
	}
	return changes
}
