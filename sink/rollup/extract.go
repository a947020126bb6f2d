package rollup

import (
	"bytes"
	"fmt"
	"strconv"
	"time"

	"github.com/runnel-stream/runnel"
)

// BadError is returned for a record that cannot be folded, for one of these causes:
//
//   - Its data is not one JSON value in UTF-8.
//   - A field of the definition is absent or null, or its value does not fit its type.
//   - A text that is used has U+0000 or half of a surrogate pair, or a key is too long.
//   - The time is neither RFC 3339 nor a number, or is not in the years 1 to 9999.
//   - A function of an Own column returned an error, or a value that no database takes.
//   - A sum would overflow. Only this cause and an Own column's Merge depend on the row.
type BadError struct {
	// Reason says why in one clause, which names the field.
	Reason string
	// Err is the error behind the reason, such as ErrOverflow; nil if there is none.
	Err error
}

func (e *BadError) Error() string { return "bad record: " + e.Reason }

// Unwrap returns Err.
func (e *BadError) Unwrap() error { return e.Err }

func bad(format string, args ...any) error {
	return &BadError{Reason: fmt.Sprintf(format, args...)}
}

// The longest keys, in bytes of UTF-8: a row of a PostgreSQL index takes 2,704 bytes.
const (
	maxKey      = 1024 // one Text key
	maxTogether = 2048 // all Text keys of a record
)

// extractor reads the values of a definition out of records. A call of read overwrites the values
// of the call before. The texts are parts of the record or of unquoted: a record costs no memory.
type extractor struct {
	scanner *scanner
	keys    []input
	columns []input
	time    *input // nil: the arrival time
	bucket  time.Duration

	row      Row      // of the record, without the texts of keyTexts and texts
	keyTexts [][]byte // of the keys of type Text
	texts    [][]byte // of the columns of type Text, but for Own columns

	unquoted []byte   // the texts that are not in the record as they are
	digits   [32]byte // for those of a number
}

// input is a field of a record.
type input struct {
	Field
	slot int // in scanner.found
	op   Op  // of a column
	of   func(*runnel.Record) (Value, error)
}

// newExtractor wants a valid definition with its defaults.
func newExtractor(d Definition) *extractor {
	x := &extractor{bucket: d.Bucket}
	for _, key := range d.Keys {
		x.keys = append(x.keys, input{Field: key})
	}
	for _, c := range d.Columns {
		x.columns = append(x.columns, input{Field: c.Field, op: c.Op, of: c.Of})
	}
	var pointers []string
	var readers []*input
	add := func(in *input) {
		if in.Pointer != "" {
			pointers, readers = append(pointers, in.Pointer), append(readers, in)
		}
	}
	for i := range x.keys {
		add(&x.keys[i])
	}
	for i := range x.columns {
		add(&x.columns[i])
	}
	if d.Time != "" {
		x.time = &input{Field: Field{Pointer: d.Time}}
		add(x.time)
	}
	var slots []int
	x.scanner, slots = newScanner(pointers)
	for i, in := range readers {
		in.slot = slots[i]
	}
	x.row.Keys, x.row.Values = make([]Value, len(x.keys)), make([]Value, len(x.columns))
	x.keyTexts, x.texts = make([][]byte, len(x.keys)), make([][]byte, len(x.columns))
	return x
}

// read reads a record. The error is a *BadError.
func (x *extractor) read(record *runnel.Record) error {
	if !x.scanner.scan(record.Data) {
		return bad("it is not JSON in UTF-8")
	}
	x.unquoted = x.unquoted[:0]
	if err := x.readOrder(record); err != nil {
		return err
	}
	together := 0
	for i := range x.keys {
		in := &x.keys[i]
		if err := x.readField(in, &x.row.Keys[i], &x.keyTexts[i]); err != nil {
			return err
		}
		if size := len(x.keyTexts[i]); size > maxKey {
			return bad("%s has %d bytes, and a key at most %d", in.Pointer, size, maxKey)
		}
		together += len(x.keyTexts[i])
	}
	if together > maxTogether {
		return bad("its text keys have %d bytes together, and an index takes %d", together,
			maxTogether)
	}
	for i := range x.columns {
		in := &x.columns[i]
		var err error
		switch in.op {
		case Count:
			x.row.Values[i].Int = 1
		case Own:
			x.row.Values[i], err = readOwn(in, record)
		default:
			err = x.readField(in, &x.row.Values[i], &x.texts[i])
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// readOrder sets the order and the bucket.
func (x *extractor) readOrder(record *runnel.Record) error {
	arrival := record.ArrivalTime.UTC()
	if !inRange(arrival) {
		return bad("its arrival time is not in the years 1 to 9999")
	}
	at := arrival
	if x.time != nil {
		var err error
		if at, err = x.readTime(x.time); err != nil {
			return err
		}
	} else if x.bucket > 0 && at.IsZero() {
		return bad("it has no arrival time, which decides the bucket")
	}
	if x.bucket > 0 {
		x.row.Bucket = at.Truncate(x.bucket)
	}
	x.row.Order = Order{at, arrival, record.ShardID, record.Position}
	return nil
}

// json returns the JSON of a field.
func (x *extractor) json(in *input) ([]byte, error) {
	value := x.scanner.found[in.slot]
	switch {
	case value == nil:
		return nil, bad("it has no %s", in.Pointer)
	case value[0] == 'n':
		return nil, bad("%s is null", in.Pointer)
	}
	return value, nil
}

func (x *extractor) readTime(in *input) (time.Time, error) {
	value, err := x.json(in)
	if err != nil {
		return time.Time{}, err
	}
	at, ok := time.Time{}, false
	switch kindOf(value) {
	case "number":
		at, ok = parseDecimal(x.digits[:], value).time()
	case "string":
		text, err := x.text(in, value)
		if err != nil {
			return time.Time{}, err
		}
		at, ok = parseTime(text)
	}
	if !ok {
		return at, bad("%s is neither RFC 3339 nor a number of a time in the years 1 to 9999",
			in.Pointer)
	}
	return at, nil
}

// parseTime reads RFC 3339 and reports whether the year in UTC is 1 to 9999. UnmarshalText takes
// some texts that RFC 3339 does not allow (golang/go#54580): those with an hour of one digit, a
// comma in the seconds, or an offset of 24 hours or 60 minutes.
func parseTime(text []byte) (time.Time, bool) {
	var at time.Time
	if at.UnmarshalText(text) != nil || text[13] != ':' || bytes.IndexByte(text, ',') >= 0 {
		return at, false
	}
	if offset := text[len(text)-5:]; text[len(text)-1] != 'Z' &&
		(string(offset[:2]) > "23" || string(offset[3:]) > "59") {
		return at, false
	}
	at = at.UTC()
	return at, inRange(at)
}

// readField sets value, or text if the field's type is Text.
func (x *extractor) readField(in *input, value *Value, text *[]byte) error {
	found, err := x.json(in)
	if err != nil {
		return err
	}
	if in.Type == Text {
		*text, err = x.text(in, found)
		return err
	}
	if kind := kindOf(found); kind != "number" {
		return bad("%s is %s %s, not a number", in.Pointer, article(kind), kind)
	}
	ok := false
	if in.Type == Int {
		if value.Int, ok = parseInteger(x.digits[:], found); !ok {
			return bad("%s is not an integer of 64 bits", in.Pointer)
		}
		return nil
	}
	number, err := strconv.ParseFloat(string(found), 64)
	if err != nil {
		return bad("%s is beyond the range of a double", in.Pointer)
	}
	value.Double = positiveZero(number)
	return nil
}

// positiveZero replaces -0, which databases and comparisons take for equal to 0 and so must not
// have a row of its own.
func positiveZero(number float64) float64 {
	if number == 0 {
		return 0
	}
	return number
}
