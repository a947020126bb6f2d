package rollup

import (
	"fmt"
	"testing"
	"time"

	"github.com/runnel-stream/runnel"
)

// benchDefinition is that of edits by channel and minute.
var benchDefinition = Definition{
	Keys:   []Field{{Pointer: "/channel"}},
	Bucket: time.Minute,
	Time:   "/time",
	Columns: []Column{
		{Op: Count},
		{Op: Sum, Field: Field{Pointer: "/added", Type: Int}},
		{Op: Max, Field: Field{Pointer: "/added"}},
		{Op: Last, Field: Field{Pointer: "/user"}},
	},
}

// benchRecords are edits of 100 bytes or so, in 100 rows, in the order of their time.
func benchRecords() []runnel.Record {
	records := make([]runnel.Record, 2000)
	for n := range records {
		records[n] = runnel.Record{
			Data: fmt.Appendf(nil, `{"channel":"#%d.wikipedia","user":"user-%d","added":%d,`+
				`"time":"2016-09-12T%02d:%02d:%02d.%03dZ","page":"A page"}`,
				n%10, n%777, n*37%1000, 1, n/200, n%200/4, n%1000),
			ShardID:     "shardId-000000000000",
			Position:    runnel.Position{Sequence: runnel.SequenceNumber(fmt.Sprint(1000 + n))},
			ArrivalTime: time.UnixMilli(1_700_000_000_000 + int64(n)).UTC(),
		}
	}
	return records
}

func BenchmarkExtract(b *testing.B) {
	records := benchRecords()
	three := Definition{
		Keys: []Field{{Pointer: "/channel"}}, Bucket: time.Minute,
		Columns: []Column{
			{Op: Sum, Field: Field{Pointer: "/added", Type: Int}},
			{Op: Last, Field: Field{Pointer: "/user"}},
		},
	}
	for _, c := range []struct {
		name string
		d    Definition
	}{{"three pointers", three}, {"with time and double", benchDefinition}} {
		b.Run(c.name, func(b *testing.B) {
			x := newExtractor(c.d.WithDefaults())
			b.SetBytes(int64(len(records[0].Data)))
			b.ReportAllocs()
			for n := 0; b.Loop(); n++ {
				if err := x.read(&records[n%len(records)]); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkAdd(b *testing.B) {
	records := benchRecords()
	f, err := NewFolder(benchDefinition)
	if err != nil {
		b.Fatal(err)
	}
	for n := range records { // the rows exist
		if err := f.Add(&records[n]); err != nil {
			b.Fatal(err)
		}
	}
	b.SetBytes(int64(len(records[0].Data)))
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		if n%len(records) == 0 {
			forgetOrder(f)
		}
		if err := f.Add(&records[n%len(records)]); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(f.Len()), "rows")
}

// forgetOrder makes each record of another pass a later one than those before it.
func forgetOrder(f *Folder) {
	for i := range f.groups {
		f.groups[i].row.Order = Order{}
	}
}

// BenchmarkAddNew has a new row for each record.
func BenchmarkAddNew(b *testing.B) {
	records := benchRecords()
	d := benchDefinition
	d.Keys = []Field{{Pointer: "/channel"}, {Pointer: "/user"}, {Pointer: "/time"}}
	f, err := NewFolder(d)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		if n%len(records) == 0 {
			f.Reset()
		}
		if err := f.Add(&records[n%len(records)]); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRows(b *testing.B) {
	records := benchRecords()
	f, err := NewFolder(benchDefinition)
	if err != nil {
		b.Fatal(err)
	}
	for n := range records {
		if err := f.Add(&records[n]); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		if len(f.Rows()) != 100 {
			b.Fatal(f.Len())
		}
	}
}
