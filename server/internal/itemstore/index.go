package itemstore

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/btree"
)

// Index describes a global secondary index: the table's items that have the index's key, in the
// order of that key. Several items may have the same key.
type Index struct {
	Name          string
	Schema        Schema
	Projection    string   // ProjectAll, ProjectKeys or ProjectSome
	Include       []string `json:",omitempty"` // with ProjectSome, besides the keys
	ReadCapacity  int64    `json:",omitempty"` // units per second, if the table is provisioned
	WriteCapacity int64    `json:",omitempty"` // units per second, if the table is provisioned
}

// The projections: the attributes that an index holds besides the keys of the table and of the
// index. They are all, none, or those in Include.
const (
	ProjectAll  = "ALL"
	ProjectKeys = "KEYS_ONLY"
	ProjectSome = "INCLUDE"
)

// IndexStats counts the items of an index.
type IndexStats struct {
	Items int64
	Bytes int64 // sum of the projected items' sizes
}

// IndexChange is the effect of a write on one index: the sizes of the projected item before and
// after, 0 for none.
type IndexChange struct {
	Index            string
	OldSize, NewSize int
	Moved            bool // the index key changed: one entry was deleted and another one put
}

// IndexKeyError is returned for an item with an attribute of an index's key that is of the wrong
// type or size.
type IndexKeyError struct {
	Index     string
	Attribute KeyAttribute // the index's declaration
	Value     Value        // the item's value
}

func (e *IndexKeyError) Error() string {
	return fmt.Sprintf("attribute %s does not fit index %s", e.Attribute.Name, e.Index)
}

// secondary is an index in memory. It is not stored: the store builds it from the items when it
// opens, and reads them all then anyway. So a frame holds one item however many indexes there
// are, and no crash can leave an index that contradicts its table. An entry holds the projected
// item. A write that changes no projected attribute leaves the index as it is; renewing a lease
// is such a write for an index of keys only.
//
// Its table's lock guards it.
type secondary struct {
	Index
	table  Schema
	memory *memory
	tree   *btree.BTreeG[*indexEntry]
	bytes  int64
	held   int64 // the memory of the entries
}

// indexEntry is a projected item. Entries are ordered by index key, then by primary key, since
// several items may have one index key. They are replaced, never changed.
//
// One string holds place, of and body. None of them is a part of the item's own entry, which may
// be replaced while the index stays as it is, and would be kept in memory by its parts.
type indexEntry struct {
	place, of string
	body      string // the projected item's encoding
	size      int
}

// weight returns the memory that the entry takes.
func (e *indexEntry) weight() int64 {
	if e == nil {
		return 0
	}
	return weight(len(e.place)+len(e.of), len(e.body))
}

func beforeInIndex(a, b *indexEntry) bool {
	if order := strings.Compare(a.place, b.place); order != 0 {
		return order < 0
	}
	return a.of < b.of
}

func newSecondary(t *Table, index Index) *secondary {
	return &secondary{
		Index: index, table: t.schema, memory: t.memory,
		tree: btree.NewG(treeDegree, beforeInIndex),
	}
}

// key returns the item's key in the index. It returns false if the item lacks an attribute of
// that key: such an item is not in the index (a sparse index).
func (x *secondary) key(item Item) (Key, bool) {
	if item == nil {
		return Key{}, false
	}
	key, err := x.Schema.Key(item)
	if err != nil || !fitsKey(key.Hash, MaxHashKey) {
		return key, false
	}
	return key, key.Range == nil || fitsKey(key.Range, MaxRangeKey)
}

// fitsKey reports whether a value of the right kind can be a key: DynamoDB allows no empty keys.
func fitsKey(value Value, most int) bool {
	size := ValueSize(value)
	return size > 0 && size <= most
}

// check returns an *IndexKeyError if next cannot be indexed. It accepts a key attribute that old
// already has with the same value: the index may be newer than the item, and left it out.
func (x *secondary) check(old, next Item) error {
	for _, part := range []KeyAttribute{x.Schema.Hash, x.Schema.Range} {
		value := next[part.Name]
		if part.Name == "" || value == nil || Equal(value, old[part.Name]) {
			continue
		}
		most := MaxHashKey
		if part == x.Schema.Range {
			most = MaxRangeKey
		}
		if value.Kind() != part.Kind || !fitsKey(value, most) {
			return &IndexKeyError{x.Name, part, value}
		}
	}
	return nil
}

// project returns the item as the index holds it.
func (x *secondary) project(item Item) Item {
	if x.Projection == ProjectAll {
		return item
	}
	part := make(Item, 4)
	take := func(name string) {
		if value := item[name]; value != nil {
			part[name] = value
		}
	}
	for _, schema := range []Schema{x.table, x.Schema} {
		take(schema.Hash.Name)
		take(schema.Range.Name)
	}
	for _, name := range x.Include {
		take(name)
	}
	return part
}

// sameShown reports whether two items of one primary key have the same projection.
func (x *secondary) sameShown(a, b Item) bool {
	if x.Projection == ProjectAll {
		return Equal(a, b)
	}
	same := func(name string) bool {
		return a[name] == nil && b[name] == nil || Equal(a[name], b[name])
	}
	return x.sameKey(a, b) && !slices.ContainsFunc(x.Include,
		func(name string) bool { return !same(name) })
}

func (x *secondary) sameKey(a, b Item) bool {
	return Equal(a[x.Schema.Hash.Name], b[x.Schema.Hash.Name]) &&
		(x.Schema.Range.Name == "" || Equal(a[x.Schema.Range.Name], b[x.Schema.Range.Name]))
}

// replace updates the index after a write of the item whose primary key has the place of; nil
// means no item. It returns false if the index did not change.
func (x *secondary) replace(of string, old, next Item) (IndexChange, bool) {
	oldKey, wasIn := x.key(old)
	newKey, isIn := x.key(next)
	if !wasIn && !isIn || wasIn && isIn && x.sameShown(old, next) {
		return IndexChange{}, false
	}
	grown := int64(0)
	change := IndexChange{Index: x.Name, Moved: wasIn && isIn && !x.sameKey(old, next)}
	if wasIn {
		gone, found := x.tree.Delete(&indexEntry{place: oldKey.place(), of: of})
		if found {
			change.OldSize = gone.size
			grown -= gone.weight()
		}
	}
	if isIn {
		e := x.entry(newKey, of, next)
		x.tree.ReplaceOrInsert(e)
		grown += e.weight()
		change.NewSize = e.size
	}
	x.bytes += int64(change.NewSize - change.OldSize)
	x.held += grown
	x.memory.add(grown)
	return change, true
}

// entry returns the item's entry in the index, under the index key.
func (x *secondary) entry(key Key, of string, item Item) *indexEntry {
	shown := x.project(item)
	place := key.place()
	text := append(make([]byte, 0, len(place)+len(of)+Size(shown)), place...)
	text = append(text, of...)
	whole := string(appendItem(text, shown))
	at, end := len(place), len(place)+len(of)
	return &indexEntry{
		place: whole[:at], of: whole[at:end], body: whole[end:], size: Size(shown),
	}
}

// growth returns the memory by which replace would grow the index.
func (x *secondary) growth(of string, old, next Item) int64 {
	grown := int64(0)
	if key, wasIn := x.key(old); wasIn {
		present, _ := x.tree.Get(&indexEntry{place: key.place(), of: of})
		grown -= present.weight()
	}
	if key, isIn := x.key(next); isIn {
		grown += x.entry(key, of, next).weight()
	}
	return grown
}

// reindex brings the table's indexes in line with its description: it keeps existing ones and
// fills new ones. Filling takes a walk over the table, which is blocked meanwhile. The lock is
// held.
func (t *Table) reindex() {
	indexes := make([]*secondary, len(t.mu.meta.Indexes))
	for i, index := range t.mu.meta.Indexes {
		at := slices.IndexFunc(t.mu.indexes, func(x *secondary) bool {
			return x.Name == index.Name && x.Schema == index.Schema &&
				x.Projection == index.Projection && slices.Equal(x.Include, index.Include)
		})
		if at >= 0 {
			indexes[i] = t.mu.indexes[at]
			indexes[i].Index = index
			continue
		}
		indexes[i] = newSecondary(t, index)
		t.mu.items.Ascend(func(e *entry) bool {
			indexes[i].replace(e.place, nil, e.item())
			return true
		})
	}
	for _, x := range t.mu.indexes {
		if !slices.Contains(indexes, x) {
			t.memory.add(-x.held)
		}
	}
	t.mu.indexes = indexes
}

// index returns the index of a name, or nil. The lock is held.
func (t *Table) index(name string) *secondary {
	for _, x := range t.mu.indexes {
		if x.Name == name {
			return x
		}
	}
	return nil
}
