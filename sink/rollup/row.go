package rollup

import (
	"cmp"
	"strings"
	"time"
)

// Value is a value of a key or a column. Only the field for the column's Type counts; the others
// are zero.
type Value struct {
	Int    int64   // of an Int
	Double float64 // of a Double: finite, and never -0
	Text   string  // of a Text: UTF-8 without U+0000
}

// compare orders two values of a type.
func (v Value) compare(other Value, t Type) int {
	switch t {
	case Int:
		return cmp.Compare(v.Int, other.Int)
	case Double:
		return cmp.Compare(v.Double, other.Double)
	default:
		return strings.Compare(v.Text, other.Text)
	}
}

// Row aggregates the records of one key and bucket.
type Row struct {
	// Keys are the values of Definition.Keys.
	Keys []Value
	// Bucket is the bucket's beginning, in UTC; the zero time if rows have no bucket.
	Bucket time.Time
	// Values are the values of Definition.Columns.
	Values []Value
	// Order is that of the row's last record.
	Order Order
}
