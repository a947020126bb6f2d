package itemstore

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/btree"
)

// Index describes a global secondary index: the table's items that have its key, in the order
// of that key. Key values need not be unique.
type Index struct {
	Name          string
	Schema        Schema
	Projection    string   // ProjectAll, ProjectKeys or ProjectSome
	Include       []string `json:",omitempty"` // with ProjectSome, besides the keys
	ReadCapacity  int64    `json:",omitempty"` // units per second, if the table is provisioned
	WriteCapacity int64    `json:",omitempty"` // units per second, if the table is provisioned
}

// What an index shows of an item, besides the keys of the table and of the index, which are
// always there: everything, nothing, or what Include names.
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

// IndexChange is what a write did to one index: the sizes of the projected item before and
// after, 0 for none.
type IndexChange struct {
	Index            string
	OldSize, NewSize int
	Moved            bool // the index key changed: one entry was deleted and another one put
}

// IndexKeyError is returned for an item that cannot stand in an index, although it has the
// index's key.
type IndexKeyError struct {
	Index     string
	Attribute KeyAttribute // as the index wants it
	Value     Value        // as the item has it
}

func (e *IndexKeyError) Error() string {
	return fmt.Sprintf("attribute %s does not fit index %s", e.Attribute.Name, e.Index)
}

// secondary is an index in memory. It is not stored but made from the items when the store
// opens: they are all read then anyway, a frame stays one item long, and no crash can leave an
// index that contradicts its table. An entry holds the projected item: so a write of what an
// index does not show, as the renewal of a lease is for one of keys only, does not touch it.
//
// Its table's lock guards it.
type secondary struct {
	Index
	table Schema
	tree  *btree.BTreeG[*indexEntry]
	bytes int64
}

// indexEntry is a projected item. Its place is that of its index key, and then that of its
// primary key, since index keys may be the same. Entries are replaced, never changed.
type indexEntry struct {
	place, of string
	item      Item
	size      int
}

func beforeInIndex(a, b *indexEntry) bool {
	if order := strings.Compare(a.place, b.place); order != 0 {
		return order < 0
	}
	return a.of < b.of
}

func newSecondary(table Schema, index Index) *secondary {
	return &secondary{
		Index: index, table: table, tree: btree.NewG(treeDegree, beforeInIndex),
	}
}

// key returns the item's key in the index, and false if the item is not in it: a sparse index
// leaves out what lacks an attribute of its key.
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

// fitsKey reports whether a value of the right kind can be a key: DynamoDB has no empty ones.
func fitsKey(value Value, most int) bool {
	size := ValueSize(value)
	return size > 0 && size <= most
}

// check returns an *IndexKeyError if next cannot be indexed. What stands there already is not
// looked at: the index may be younger than it, and has left it out.
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

// project returns what the index shows of an item.
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

// sameShown reports whether the index shows the same of two items of one primary key.
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

// replace follows a write of the item whose primary key is at the place of; nil is no item.
// It reports false if the index is as it was.
func (x *secondary) replace(of string, old, next Item) (IndexChange, bool) {
	oldKey, wasIn := x.key(old)
	newKey, isIn := x.key(next)
	if !wasIn && !isIn || wasIn && isIn && x.sameShown(old, next) {
		return IndexChange{}, false
	}
	change := IndexChange{Index: x.Name, Moved: wasIn && isIn && !x.sameKey(old, next)}
	if wasIn {
		gone, found := x.tree.Delete(&indexEntry{place: oldKey.place(), of: of})
		if found {
			change.OldSize = gone.size
		}
	}
	if isIn {
		e := &indexEntry{place: newKey.place(), of: of, item: x.project(next)}
		e.size = Size(e.item)
		x.tree.ReplaceOrInsert(e)
		change.NewSize = e.size
	}
	x.bytes += int64(change.NewSize - change.OldSize)
	return change, true
}

// reindex makes the table's indexes those of its description: the ones that stay are kept,
// and new ones filled. It takes the time of a walk over the table, during which the table
// stands still. The lock is held.
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
		indexes[i] = newSecondary(t.schema, index)
		t.mu.items.Ascend(func(e *entry) bool {
			indexes[i].replace(e.place, nil, e.item)
			return true
		})
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
