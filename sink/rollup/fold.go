package rollup

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"

	"github.com/runnel-stream/runnel"
)

// Folder folds records into rows in memory. It is used by one goroutine at a time, and keeps no
// record.
type Folder struct {
	columns []Column // with their defaults
	keys    []Field
	extract *extractor     // has the record that is added
	index   map[string]int // from the bytes of keys and bucket to groups
	groups  []group
	key     []byte  // in index, of the record that is added
	next    []Value // of the group that is changed, until no column can fail any more
}

// group is a row in memory.
type group struct {
	row Row // as extractor.row, but with the texts of its keys
	// texts are as extractor.texts. They are buffers since a Last column takes a text for most
	// records, and a string for each of them would be garbage soon.
	texts [][]byte
}

// NewFolder returns a folder without rows, or the error of Definition.Validate.
func NewFolder(d Definition) (*Folder, error) {
	if err := d.Validate(); err != nil {
		return nil, err
	}
	d = d.WithDefaults()
	return &Folder{
		columns: d.Columns, keys: d.Keys, extract: newExtractor(d), index: map[string]int{},
		next: make([]Value, len(d.Columns)),
	}, nil
}

// Len returns the number of rows.
func (f *Folder) Len() int { return len(f.groups) }

// Add folds a record into its row. A record that cannot be folded, alone or into this row, is a
// *BadError and changes nothing.
func (f *Folder) Add(record *runnel.Record) error {
	_, err := f.add(record)
	return err
}

// add is Add. It returns the index of the record's group; -1 if the record has no row.
func (f *Folder) add(record *runnel.Record) (int, error) {
	if err := f.extract.read(record); err != nil {
		return -1, err
	}
	f.appendKey()
	if i, ok := f.index[string(f.key)]; ok {
		return i, f.merge(&f.groups[i])
	}
	i := len(f.groups)
	f.index[string(f.key)] = i
	f.groups = append(f.groups, f.newGroup())
	return i, nil
}

// appendKey sets key to bytes that are the same for the records of one row only.
func (f *Folder) appendKey() {
	f.key = f.key[:0]
	read := &f.extract.row
	for i := range f.keys {
		switch f.keys[i].Type {
		case Int:
			f.key = binary.LittleEndian.AppendUint64(f.key, uint64(read.Keys[i].Int))
		case Double:
			f.key = binary.LittleEndian.AppendUint64(f.key, math.Float64bits(read.Keys[i].Double))
		default:
			text := f.extract.keyTexts[i]
			f.key = binary.AppendUvarint(f.key, uint64(len(text)))
			f.key = append(f.key, text...)
		}
	}
	if f.extract.bucket > 0 {
		f.key = binary.LittleEndian.AppendUint64(f.key, uint64(read.Bucket.UnixMilli()))
	}
}

// newGroup returns the group of the record that was read.
func (f *Folder) newGroup() group {
	x := f.extract
	g := group{row: x.row}
	g.row.Keys, g.row.Values = cut(slices.Concat(x.row.Keys, x.row.Values), len(f.keys))
	for i, text := range x.keyTexts {
		if f.keys[i].Type == Text {
			g.row.Keys[i].Text = string(text)
		}
	}
	for i, text := range x.texts {
		if f.isText(i) {
			if g.texts == nil {
				g.texts = make([][]byte, len(f.columns))
			}
			g.texts[i] = bytes.Clone(text)
		}
	}
	return g
}

// isText reports whether group.texts has the column's value.
func (f *Folder) isText(column int) bool {
	return f.columns[column].Type == Text && f.columns[column].Op != Own
}

// merge merges the record that was read into a group. An error leaves the group as it was.
func (f *Folder) merge(g *group) error {
	x := f.extract
	newer := x.row.Order.Compare(g.row.Order) > 0
	for i := range f.columns {
		c := &f.columns[i]
		if f.isText(i) {
			continue
		}
		var err error
		if f.next[i], err = c.merge(g.row.Values[i], x.row.Values[i], newer); err != nil {
			return &BadError{Reason: c.Name + ": " + err.Error(), Err: err}
		}
	}
	copy(g.row.Values, f.next)
	for i := range g.texts {
		if f.isText(i) && f.columns[i].Op.takes(bytes.Compare(x.texts[i], g.texts[i]), newer) {
			g.texts[i] = append(g.texts[i][:0], x.texts[i]...)
		}
	}
	if newer {
		g.row.Order = x.row.Order
	}
	return nil
}

// Rows returns the rows in the order of their keys, then of their buckets. Texts are ordered by
// their bytes. The caller owns the rows: a later Add or Reset does not change them.
func (f *Folder) Rows() []Row {
	ordered := make([]*group, len(f.groups))
	for i := range f.groups {
		ordered[i] = &f.groups[i]
	}
	slices.SortFunc(ordered, f.compare)
	rows := make([]Row, len(ordered))
	for i, g := range ordered {
		rows[i] = f.rowOf(g)
	}
	return rows
}

// rowOf returns a copy of a group's row.
func (f *Folder) rowOf(g *group) Row {
	row := g.row
	row.Keys, row.Values = cut(slices.Concat(row.Keys, row.Values), len(f.keys))
	for column, text := range g.texts {
		if f.isText(column) {
			row.Values[column].Text = string(text)
		}
	}
	return row
}

// cut cuts values in two, of which the first has n; an append to it does not change the second.
func cut(values []Value, n int) (first, second []Value) { return values[:n:n], values[n:] }

func (f *Folder) compare(a, b *group) int {
	for i := range f.keys {
		if order := a.row.Keys[i].compare(b.row.Keys[i], f.keys[i].Type); order != 0 {
			return order
		}
	}
	return a.row.Bucket.Compare(b.row.Bucket)
}

// Reset removes all rows.
func (f *Folder) Reset() {
	clear(f.index)
	clear(f.groups)
	f.groups = f.groups[:0]
}
