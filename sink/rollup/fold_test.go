package rollup

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/runnel-stream/runnel"
)

// at returns a record with the arrival time, in milliseconds, and the sequence number n.
func at(n int64, format string, args ...any) *runnel.Record {
	return &runnel.Record{
		Data: fmt.Appendf(nil, format, args...), ShardID: "shardId-000000000000",
		Position:    runnel.Position{Sequence: runnel.SequenceNumber(fmt.Sprint(n))},
		ArrivalTime: time.UnixMilli(n),
	}
}

func newFolder(t *testing.T, d Definition) *Folder {
	t.Helper()
	f, err := NewFolder(d)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func add(t *testing.T, f *Folder, records ...*runnel.Record) {
	t.Helper()
	for _, record := range records {
		if err := f.Add(record); err != nil {
			t.Fatalf("%s: %v", record.Data, err)
		}
	}
}

// valuesOf returns the only row's values as text.
func valuesOf(t *testing.T, f *Folder) string {
	t.Helper()
	rows := f.Rows()
	if len(rows) != 1 {
		t.Fatalf("%d rows", len(rows))
	}
	return fmt.Sprint(rows[0].Values)
}

func TestFoldOps(t *testing.T) {
	field := func(op Op, of Type) Column {
		return Column{Op: op, Field: Field{Pointer: "/v", Type: of}}
	}
	for _, c := range []struct {
		column Column
		values []string // JSON, in the order of arrival, which is not that of time
		want   Value
	}{
		{Column{Op: Count}, []string{"1", "2", "3"}, Value{Int: 3}},
		{field(Sum, Int), []string{"1", "-2", "4.0"}, Value{Int: 3}},
		{field(Sum, Double), []string{"0.5", "0.25", "-2"}, Value{Double: -1.25}},
		{field(Min, Int), []string{"5", "-9007199254740992", "-9007199254740993"}, Value{Int: -9007199254740993}},
		{field(Max, Int), []string{"5", "9007199254740992", "9007199254740993"}, Value{Int: 9007199254740993}},
		{field(Min, Double), []string{"5", "-3.5", "10"}, Value{Double: -3.5}},
		{field(Max, Double), []string{"5", "-3.5", "10"}, Value{Double: 10}},
		{field(Min, Text), []string{`"b"`, `"B"`, `"é"`}, Value{Text: "B"}},
		{field(Max, Text), []string{`"b"`, `"é"`, `"z"`}, Value{Text: "é"}}, // by bytes
		{field(Max, Text), []string{`9`, `10`, `""`}, Value{Text: "9"}},
		{field(Last, Text), []string{`"first"`, `"newest of all"`, `"old"`}, Value{Text: "newest of all"}},
		{field(Last, Int), []string{"1", "2", "3"}, Value{Int: 2}},
		{field(Last, Double), []string{"1", "2", "3"}, Value{Double: 2}},
	} {
		f := newFolder(t, Definition{Keys: []Field{{Pointer: "/k"}}, Time: "/t", Columns: []Column{c.column}})
		for i, value := range c.values {
			add(t, f, at(int64(i+1), `{"k":1,"v":%s,"t":%d}`, value, []int{10, 30, 20}[i]))
		}
		if got := valuesOf(t, f); got != fmt.Sprint([]Value{c.want}) {
			t.Errorf("%s of %s %v: %s, want %v", c.column.Op, c.column.Type, c.values, got, c.want)
		}
	}
}

func TestRows(t *testing.T) {
	f := newFolder(t, Definition{
		Keys:    []Field{{Pointer: "/text"}, {Pointer: "/int", Type: Int}, {Pointer: "/double", Type: Double}},
		Bucket:  time.Minute,
		Columns: []Column{{Op: Count}, {Op: Last, Field: Field{Pointer: "/int"}}},
	})
	const minute = 60_000
	add(t, f,
		at(5*minute, `{"text":"a","int":10,"double":1}`),
		at(5*minute+1, `{"text":"a","int":10,"double":1.0}`),
		at(4*minute, `{"text":"a","int":10,"double":1}`),
		at(4*minute, `{"text":"a","int":9,"double":1}`),
		at(4*minute, `{"text":"a","int":-9,"double":1}`),
		at(4*minute, `{"text":"é","int":9,"double":-1.5}`),
		at(4*minute, `{"text":"z","int":9,"double":0}`),
		at(4*minute, `{"text":"z","int":9,"double":-0.0}`),
		at(4*minute, `{"text":"","int":9,"double":-1}`),
		at(4*minute, `{"text":"a\t","int":9,"double":20}`),
		at(4*minute, `{"text":"a\t","int":9,"double":3}`),
	)
	const want = "0||9|-1 1|a|-9|1 1|a|9|1 1|a|10|1 1|a|10|1 2|a\t|9|3 1|a\t|9|20 1|z|9|0 2|é|9|-1.5 1"
	var got []string
	for _, row := range f.Rows() {
		k := row.Keys
		got = append(got, fmt.Sprintf("%s|%d|%g %d", k[0].Text, k[1].Int, k[2].Double, row.Values[0].Int))
	}
	if text := "0|" + strings.Join(got, "|"); text != want {
		t.Errorf("%q\nwant %q", text, want)
	}
	if rows := f.Rows(); f.Len() != 9 || rows[3].Bucket.Sub(rows[4].Bucket) != -time.Minute {
		t.Errorf("%d rows, buckets %s and %s", f.Len(), rows[3].Bucket, rows[4].Bucket)
	}
}

// TestKeysAreApart has keys that are the same text one after the other.
func TestKeysAreApart(t *testing.T) {
	f := newFolder(t, Definition{
		Keys: []Field{{Pointer: "/a"}, {Pointer: "/b"}}, Columns: []Column{{Op: Count}},
	})
	add(t, f, at(1, `{"a":"x","b":"yz"}`), at(1, `{"a":"xy","b":"z"}`), at(1, `{"a":"","b":"xyz"}`))
	if f.Len() != 3 {
		t.Errorf("%v, want 3 rows", f.Rows())
	}
}

// TestRowsAreOwned changes rows that a folder returned, and the folder after it returned them.
func TestRowsAreOwned(t *testing.T) {
	d := Definition{
		Keys:    []Field{{Pointer: "/k"}},
		Columns: []Column{{Op: Last, Field: Field{Pointer: "/v"}}, {Op: Max, Field: Field{Pointer: "/n"}}},
	}
	f := newFolder(t, d)
	record := at(1, `{"k":"key","v":"one","n":1}`)
	add(t, f, record)
	clear(record.Data) // a folder keeps no record
	rows := f.Rows()
	kept := f.Rows()
	rows[0].Keys[0].Text, rows[0].Values[0].Text, rows[0].Values[1].Double = "", "", 7
	if got := f.Rows(); !reflect.DeepEqual(got, kept) {
		t.Errorf("%v, want %v", got, kept)
	}
	add(t, f, at(2, `{"k":"key","v":"two","n":2}`))
	if got := fmt.Sprint(kept[0].Keys, kept[0].Values); got != "[{0 0 key}] [{0 0 one} {0 1 }]" {
		t.Error(got)
	}
	f.Reset()
	if f.Len() != 0 || len(f.Rows()) != 0 {
		t.Errorf("%d rows after Reset", f.Len())
	}
	add(t, f, at(3, `{"k":"key","v":"three","n":0}`))
	if got := valuesOf(t, f); got != "[{0 0 three} {0 0 }]" {
		t.Errorf("after Reset: %s", got)
	}
}

// TestBadChangesNothing adds bad records to a row: the last column of each is the bad one.
func TestBadChangesNothing(t *testing.T) {
	boom := errors.New("boom")
	f := newFolder(t, Definition{Keys: []Field{{Pointer: "/k"}}, Columns: []Column{
		{Op: Count},
		{Op: Last, Field: Field{Pointer: "/text"}},
		{Op: Max, Field: Field{Pointer: "/text", Type: Text}},
		{Op: Sum, Field: Field{Pointer: "/int", Type: Int}},
		{Op: Sum, Field: Field{Pointer: "/double"}},
		{
			Op: Own, Field: Field{Name: "own", Type: Int},
			Of: func(r *runnel.Record) (Value, error) {
				if strings.Contains(string(r.Data), "of") {
					return Value{}, boom
				}
				return Value{Int: int64(len(r.Data))}, nil
			},
			Merge: func(into, next Value) (Value, error) {
				if next.Int == int64(len(`{"k":1,"text":"merge","int":1,"double":1}`)) {
					return Value{}, boom
				}
				return Value{Int: max(into.Int, next.Int)}, nil
			},
		},
	}})
	add(t, f, at(1, `{"k":1,"text":"a","int":%d,"double":%g}`, math.MaxInt64, math.MaxFloat64))
	before := f.Rows()
	for _, c := range []struct {
		data, reason string
		err          error
	}{
		{`{"k":1,"text":"b","int":1,"double":0}`, `sum_int: the sum leaves the range of the column's type, which is wider with the type "double"`, ErrOverflow},
		{`{"k":1,"text":"b","int":0,"double":1e308}`, "sum_double: the sum leaves the range of the column's type", ErrOverflow},
		{`{"k":1,"text":"of","int":0,"double":0}`, "own: boom", boom},
		{`{"k":1,"text":"merge","int":0,"double":0}`, "own: boom", boom},
		{`{"k":1,"text":"b","int":0}`, "it has no /double", nil},
		{`{"k":2,"text":"of","int":0,"double":0}`, "own: boom", boom},
		{`{"k":2,"text":"b","int":0}`, "it has no /double", nil},
	} {
		err := f.Add(at(2, "%s", c.data))
		var bad *BadError
		if !errors.As(err, &bad) || bad.Reason != c.reason || !errors.Is(err, c.err) && c.err != nil {
			t.Errorf("%s: %v, want %s", c.data, err, c.reason)
		} else if want := "bad record: " + c.reason; err.Error() != want {
			t.Errorf("%q, want %q", err, want)
		}
		if got := f.Rows(); !reflect.DeepEqual(got, before) {
			t.Fatalf("%s has changed the rows: %v", c.data, got)
		}
	}
}

func TestMergeOverflow(t *testing.T) {
	d := Definition{Bucket: time.Hour, Columns: []Column{
		{Op: Count},
		{Op: Sum, Field: Field{Pointer: "/a", Type: Int}},
		{Op: Sum, Field: Field{Pointer: "/a"}},
	}}
	row := func(count, sum int64, double float64) *Row {
		return &Row{Values: []Value{{Int: count}, {Int: sum}, {Double: double}}}
	}
	const wider = `, which is wider with the type "double"`
	for _, c := range []struct {
		into, from *Row
		want       string // the error, or the values
	}{
		{row(1, -1, 1), row(2, 3, 0.5), "[{3 0 } {2 0 } {0 1.5 }]"},
		{row(1, math.MaxInt64, 0), row(1, math.MinInt64, 0), "[{2 0 } {-1 0 } {0 0 }]"},
		{row(1, math.MinInt64+1, 0), row(1, -1, 0), fmt.Sprintf("[{2 0 } {%d 0 } {0 0 }]", math.MinInt64)},
		{row(1, math.MinInt64, 0), row(1, -1, 0), "column sum_a: the sum leaves the range of the column's type" + wider},
		{row(1, math.MaxInt64, 0), row(1, 1, 0), "column sum_a: the sum leaves the range of the column's type" + wider},
		{row(math.MaxInt64, 0, 0), row(1, 0, 0), "column count: the sum leaves the range of the column's type" + wider},
		{row(1, 0, -math.MaxFloat64), row(1, 0, -math.MaxFloat64), "column sum2: the sum leaves the range of the column's type"},
	} {
		d.Columns[2].Name = "sum2"
		before := fmt.Sprint(*c.into)
		err := d.Merge(c.into, c.from)
		got := fmt.Sprint(c.into.Values)
		if err != nil {
			got = err.Error()
			if !errors.Is(err, ErrOverflow) || fmt.Sprint(*c.into) != before {
				t.Errorf("%v; %v was %s", err, *c.into, before)
			}
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", before, got, c.want)
		}
	}
}

// TestOwn merges texts by a function whose arguments have an order.
func TestOwn(t *testing.T) {
	d := Definition{Bucket: time.Hour, Columns: []Column{{
		Op: Own, Field: Field{Name: "path", Type: Text},
		Of: func(r *runnel.Record) (Value, error) {
			return Value{Text: strings.Trim(string(r.Data), `"`), Int: 5, Double: 7}, nil
		},
		Merge: func(into, next Value) (Value, error) {
			return Value{Text: into.Text + ">" + next.Text}, nil
		},
	}}}
	f := newFolder(t, d)
	add(t, f, at(1, `"a"`), at(2, `"b"`))
	into := f.Rows()[0]
	f.Reset()
	add(t, f, at(3, `"c"`), at(4, `"d"`))
	from := f.Rows()[0]
	if err := d.Merge(&into, &from); err != nil || fmt.Sprint(into.Values) != "[{0 0 a>b>c>d}]" {
		t.Errorf("%v, %v", into.Values, err)
	}
	if err := d.Merge(&into, &Row{Values: []Value{{Text: "\x00"}}}); err == nil ||
		err.Error() != `column path: the value "a>b>c>d>\x00" is not UTF-8 without U+0000` {
		t.Error(err)
	}
}

func TestOwnValues(t *testing.T) {
	for _, c := range []struct {
		of     Type
		value  Value
		reason string
	}{
		{Text, Value{Text: "é"}, ""},
		{Text, Value{Text: "a\x00"}, `own: the value "a\x00" is not UTF-8 without U+0000`},
		{Text, Value{Text: "a\xff"}, `own: the value "a\xff" is not UTF-8 without U+0000`},
		{Double, Value{Double: math.Inf(-1)}, "own: the value -Inf is not a finite number"},
		{Double, Value{Double: math.NaN()}, "own: the value NaN is not a finite number"},
		{Double, Value{Double: math.Copysign(0, -1)}, ""},
		{Int, Value{Int: -1, Text: "\xff"}, ""},
	} {
		f := newFolder(t, Definition{Bucket: time.Hour, Columns: []Column{{
			Op: Own, Field: Field{Name: "own", Type: c.of},
			Of:    func(*runnel.Record) (Value, error) { return c.value, nil },
			Merge: func(into, _ Value) (Value, error) { return into, nil },
		}}})
		reason := ""
		if err := f.Add(at(1, "{}")); err != nil {
			reason = reasonOf(t, f, err)
		} else if got := fmt.Sprint(f.Rows()[0].Values); strings.Contains(got, "-0") || strings.Contains(got, "\xff") {
			t.Errorf("%v became %s", c.value, got)
		}
		if reason != c.reason {
			t.Errorf("%v: %q, want %q", c.value, reason, c.reason)
		}
	}
}

// TestAddAllocates folds records into rows that exist. Each of them replaces the last text.
func TestAddAllocates(t *testing.T) {
	f := newFolder(t, benchDefinition)
	records := benchRecords()
	n := 0
	step := func() {
		if n%len(records) == 0 {
			forgetOrder(f)
		}
		if err := f.Add(&records[n%len(records)]); err != nil {
			t.Fatal(err)
		}
		n++
	}
	for range records {
		step()
	}
	if allocs := testing.AllocsPerRun(2*len(records)-1, step); allocs != 0 {
		t.Errorf("%g allocations a record, want none", allocs)
	}
	if last := f.Rows()[0].Values[3].Text; last != "user-190" {
		t.Errorf("the last text is %q", last)
	}
}

// TestBuffers checks that records with escapes do not make the extractor grow.
func TestBuffers(t *testing.T) {
	f := newFolder(t, benchDefinition)
	for n := range int64(1000) {
		add(t, f, at(n, `{"channel":"\n","user":[ 1 ],"added":%d.0,"time":%d}`, n, n))
	}
	if size := cap(f.extract.unquoted); size > 100 {
		t.Errorf("the buffer of texts has %d bytes", size)
	}
}
