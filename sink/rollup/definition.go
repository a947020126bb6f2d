package rollup

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/runnel-stream/runnel"
)

// Definition says how records become rows: one row for each combination of keys and bucket. At
// least one of Keys and Bucket is required, and at least one column. Its methods change nothing and
// are safe for concurrent use.
type Definition struct {
	// Keys are the fields that a row's records have in common, at most 31. A Text key has at most
	// 1,024 bytes, and those of a record have at most 2,048 together.
	Keys []Field
	// Bucket is the length of a row's time bucket. It must divide a day (24 h) and be a whole
	// number of milliseconds. A bucket begins at a multiple of its length after midnight UTC.
	// Default 0: rows have no bucket.
	Bucket time.Duration
	// Time is the JSON pointer of the record's time, which decides its bucket and which record is
	// the last one. The value is RFC 3339 text or a number since the Unix epoch: seconds below
	// 1e11, milliseconds below 1e14, microseconds below 1e17, nanoseconds from there on. Default
	// "": the arrival time.
	Time string
	// Columns are the values of a row.
	Columns []Column
}

// Field is a value inside a record's JSON and the SQL column that it goes to.
type Field struct {
	// Name is the SQL column: 1 to 59 of the characters a to z, 0 to 9 and _. Default: the names
	// on the pointer, joined by "_" and in lower case, with "_" for every other character; before
	// it "sum_", "min_", "max_" or "last_" in a Column. A Count has the default "count".
	Name string `json:"name"`
	// Pointer is the JSON pointer (RFC 6901) of the value, such as /user/name. It is empty in a
	// Count and an Own column.
	Pointer string `json:"pointer,omitempty"`
	// Type is the type of the SQL column. Default: Text for a key and for Last, Double for Sum, Min
	// and Max, Int for Count. An Own column has no default.
	Type Type `json:"type"`
}

// Column is a value that is merged over the records of a row.
type Column struct {
	// Op is how two values become one.
	Op Op
	// Field is where the value comes from and goes to.
	Field
	// Of returns the value of a record for an Own column. An error makes the record a bad one. Of
	// must be deterministic, since a record may be read again after a failure. It must not change
	// or keep the record. Folders of several goroutines call Of and Merge concurrently.
	Of func(*runnel.Record) (Value, error)
	// Merge returns the value of two records, or of two runs of records, for an Own column. It must
	// be deterministic and associative: the runs end wherever a batch ends, and a batch may end
	// elsewhere when it is read again. It must be commutative, too, if records of one key and
	// bucket come from several shards, since their order is then open. An error during
	// Folder.Add makes the record a bad one; during Definition.Merge it ends the merge.
	Merge func(into, next Value) (Value, error)
}

// Type is the type of a value: Int, Double or Text.
type Type string

// The types of values.
const (
	// Int is an int64. It takes any JSON number that is integral and in range, also 1.0 and 1e3.
	Int Type = "int"
	// Double is a float64. It takes any JSON number in its range, and rounds it.
	Double Type = "double"
	// Text is UTF-8 without U+0000. It takes a JSON string as its text, and any other value but
	// null as its JSON without white space.
	Text Type = "text"
)

// Op is how a column merges two values into one.
type Op string

// The ways to merge.
const (
	// Count counts records.
	Count Op = "count"
	// Sum adds numbers. A sum of Doubles rounds after each addition, so its last digits depend on
	// where batches end.
	Sum Op = "sum"
	// Min keeps the smallest value; texts compare by their bytes.
	Min Op = "min"
	// Max keeps the largest value; texts compare by their bytes.
	Max Op = "max"
	// Last keeps the value of the record with the largest Order.
	Last Op = "last"
	// Own calls the functions of the Column.
	Own Op = "own"
)

const (
	maxName = 59 // bytes of a name: PostgreSQL takes 63, and 4 are for a suffix
	maxKeys = 31 // columns of an index in PostgreSQL take 32, and the bucket is one
	day     = 24 * time.Hour
)

// The names of columns that each table has, or may have, for itself.
const (
	bucketName    = "bucket"
	countName     = "count"
	lastOrderName = "last_order"
)

// systemNames are the columns that each table of PostgreSQL has already.
var systemNames = []string{"cmax", "cmin", "ctid", "tableoid", "xmax", "xmin"}

// WithDefaults returns a copy with the default names and types filled in.
func (d Definition) WithDefaults() Definition {
	d.Keys, d.Columns = slices.Clone(d.Keys), slices.Clone(d.Columns)
	for i := range d.Keys {
		d.Keys[i].fill("", Text)
	}
	for i := range d.Columns {
		d.Columns[i].fillDefaults()
	}
	return d
}

func (c *Column) fillDefaults() {
	switch c.Op {
	case Count:
		c.Name = cmp.Or(c.Name, countName)
		c.fill("", Int)
	case Sum, Min, Max:
		c.fill(string(c.Op)+"_", Double)
	case Last:
		c.fill("last_", Text)
	}
}

func (f *Field) fill(prefix string, t Type) {
	if f.Name == "" && f.Pointer != "" {
		f.Name = prefix + nameOf(f.Pointer)
	}
	f.Type = cmp.Or(f.Type, t)
}

// String returns the definition as one line of JSON, with its defaults filled in and the columns
// ordered by name. Two definitions that make the same table have the same text; a database keeps
// it to detect a changed definition. The functions of an Own column are not in it: give the column
// a new name if they change.
func (d Definition) String() string {
	d = d.WithDefaults()
	type column struct {
		Op Op `json:"op"`
		Field
	}
	columns := make([]column, 0, len(d.Columns))
	for _, c := range d.Columns {
		columns = append(columns, column{c.Op, c.Field})
	}
	slices.SortStableFunc(columns, func(a, b column) int { return strings.Compare(a.Name, b.Name) })
	bucket := ""
	if d.Bucket != 0 {
		bucket = d.Bucket.String()
	}
	text, _ := json.Marshal(struct { // strings always marshal
		Keys    []Field  `json:"keys,omitempty"`
		Bucket  string   `json:"bucket,omitempty"`
		Time    string   `json:"time,omitempty"`
		Columns []column `json:"columns"`
	}{d.Keys, bucket, d.Time, columns})
	return string(text)
}
