package rollup

import (
	"fmt"
	"strings"
	"time"
)

// shape is the table of a definition: its columns, and how a row is written into them.
type shape struct {
	Definition
	table string // its quoted name, perhaps with a schema
	bad   string // that of the table of bad records
	// cells are the columns: first those of the primary key, then the others.
	cells []cell
	keys  int // how many of the cells are of the primary key
}

// cell is a column of the table.
type cell struct {
	name string
	kind kind
	op   Op // of a column that is merged; "" for a key and for last_order
}

// kind is the type of a cell.
type kind string

const (
	kindInt    = kind(Int)
	kindDouble = kind(Double)
	kindText   = kind(Text)
	kindTime   = kind("time")
)

// newShape wants a valid definition with its defaults, and a valid table.
func newShape(d Definition, table string) *shape {
	s := &shape{Definition: d, table: quoted(table), bad: quoted(table + "_bad")}
	for _, key := range d.Keys {
		s.cells = append(s.cells, cell{name: key.Name, kind: kind(key.Type)})
	}
	if d.Bucket > 0 {
		s.cells = append(s.cells, cell{name: bucketName, kind: kindTime})
	}
	s.keys = len(s.cells)
	for _, c := range d.Columns {
		s.cells = append(s.cells, cell{name: c.Name, kind: kind(c.Type), op: c.Op})
	}
	if s.ordered() {
		s.cells = append(s.cells, cell{name: lastOrderName, kind: kindText})
	}
	return s
}

// ordered reports whether the table has the order of a row's last record.
func (d Definition) ordered() bool {
	for _, c := range d.Columns {
		if c.Op == Last {
			return true
		}
	}
	return false
}

// names returns the quoted names of cells.
func names(cells []cell) []string {
	all := make([]string, len(cells))
	for i, c := range cells {
		all[i] = quote(c.name)
	}
	return all
}

func (s *shape) columns() string { return strings.Join(names(s.cells), ", ") }

func (s *shape) key() string { return strings.Join(names(s.cells[:s.keys]), ", ") }

// value returns what a cell of a row holds: int64, float64, string or time.Time.
func (s *shape) value(row *Row, i int) any {
	switch c := s.cells[i]; {
	case i < len(s.Keys):
		return row.Keys[i].of(c.kind)
	case i < s.keys:
		return row.Bucket
	case c.op == "":
		return row.Order.String()
	default:
		return row.Values[i-s.keys].of(c.kind)
	}
}

func (v Value) of(k kind) any {
	switch k {
	case kindInt:
		return v.Int
	case kindDouble:
		return v.Double
	default:
		return v.Text
	}
}

// scanned is a row whose cells are being scanned.
type scanned struct {
	row   Row
	order string
	texts []string // of the times, as SQLite has them
}

// targets returns what to scan the cells of a row into.
func (s *shape) targets(to *scanned, timesAreTexts bool) []any {
	to.row = Row{Keys: make([]Value, len(s.Keys)), Values: make([]Value, len(s.Columns))}
	to.texts = make([]string, len(s.cells))
	all := make([]any, len(s.cells))
	for i, c := range s.cells {
		switch {
		case i < len(s.Keys):
			all[i] = to.row.Keys[i].into(c.kind)
		case i < s.keys && timesAreTexts:
			all[i] = &to.texts[i]
		case i < s.keys:
			all[i] = &to.row.Bucket
		case c.op == "":
			all[i] = &to.order
		default:
			all[i] = to.row.Values[i-s.keys].into(c.kind)
		}
	}
	return all
}

func (v *Value) into(k kind) any {
	switch k {
	case kindInt:
		return &v.Int
	case kindDouble:
		return &v.Double
	default:
		return &v.Text
	}
}

// finish returns the scanned row.
func (s *shape) finish(to *scanned) (Row, error) {
	var err error
	for i, c := range s.cells {
		if c.kind == kindTime && to.texts[i] != "" {
			if to.row.Bucket, err = time.Parse(bucketLayout, to.texts[i]); err != nil {
				return Row{}, fmt.Errorf("column %s: %w", c.name, err)
			}
		}
	}
	to.row.Bucket = to.row.Bucket.UTC()
	if s.ordered() {
		if to.row.Order, err = ParseOrder(to.order); err != nil {
			return Row{}, fmt.Errorf("column %s: %w", lastOrderName, err)
		}
	}
	return to.row, nil
}

// bucketLayout is a bucket's beginning as text. The order of such texts is that of the times.
const bucketLayout = "2006-01-02T15:04:05.000Z"

// keyText returns a text that only this key and bucket have.
func (s *shape) keyText(row *Row) string {
	var b strings.Builder
	for i := range s.keys {
		fmt.Fprintf(&b, "%v\x00", s.value(row, i)) // a text has no NUL
	}
	return b.String()
}

// compare orders rows by their keys, then by their buckets.
func (s *shape) compare(a, b Row) int {
	for i := range s.Keys {
		if order := a.Keys[i].compare(b.Keys[i], s.Keys[i].Type); order != 0 {
			return order
		}
	}
	return a.Bucket.Compare(b.Bucket)
}

// quote returns a name as SQL has it.
func quote(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// quoted returns a table's name as SQL has it: perhaps with its schema.
func quoted(table string) string {
	if schema, name, ok := strings.Cut(table, "."); ok {
		return quote(schema) + "." + quote(name)
	}
	return quote(table)
}

// base returns a table's name without its schema.
func base(table string) string {
	if _, name, ok := strings.Cut(table, "."); ok {
		return name
	}
	return table
}

// CheckTable returns an error for a name that cannot be that of a rollup's table.
func CheckTable(table string, dialect Dialect) error {
	switch parts := strings.Split(table, "."); {
	case table == "":
		return fmt.Errorf("rollup: Table is missing: want the name of the table for the rows")
	case len(parts) > 2 || len(parts) == 2 && (dialect == SQLite || parts[0] == ""):
		return fmt.Errorf("rollup: Table is %q: want a name, in PostgreSQL perhaps with its schema",
			table)
	case parts[len(parts)-1] == "" || len(base(table)) > maxName || strings.ContainsRune(table, 0):
		return fmt.Errorf("rollup: Table is %q: want a name of 1 to %d bytes", table, maxName)
	case strings.HasPrefix(base(table), "runnel_"):
		return fmt.Errorf("rollup: Table is %q: names that begin with runnel_ are those of "+
			"runnel's own tables", table)
	}
	return nil
}
