package rollup

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/runnel-stream/runnel"
)

// everyOp has a column of every operation and type. Its doubles are exact in the test below.
var everyOp = Definition{
	Keys:   []Field{{Pointer: "/text"}, {Pointer: "/n", Type: Int}},
	Bucket: time.Minute,
	Time:   "/time",
	Columns: []Column{
		{Op: Count},
		{Op: Sum, Field: Field{Pointer: "/int", Type: Int}},
		{Op: Sum, Field: Field{Pointer: "/double"}},
		{Op: Min, Field: Field{Pointer: "/int", Type: Int}},
		{Op: Max, Field: Field{Pointer: "/int", Type: Int}},
		{Op: Min, Field: Field{Pointer: "/double"}},
		{Op: Max, Field: Field{Pointer: "/double"}},
		{Op: Min, Field: Field{Pointer: "/user", Type: Text}},
		{Op: Max, Field: Field{Pointer: "/user", Type: Text}},
		{Op: Last, Field: Field{Pointer: "/int", Type: Int}},
		{Op: Last, Field: Field{Pointer: "/double", Type: Double}},
		{Op: Last, Field: Field{Pointer: "/user"}},
		{
			Op: Own, Field: Field{Name: "bits", Type: Int},
			Of: func(r *runnel.Record) (Value, error) {
				return Value{Int: 1 << (r.ArrivalTime.UnixMilli() % 60)}, nil
			},
			Merge: func(into, next Value) (Value, error) { return Value{Int: into.Int | next.Int}, nil },
		},
	},
}

// drawRecords draws the records of some shards, each shard's in order, all in any order.
func drawRecords(t *rapid.T) (records []runnel.Record) {
	small := func(label string) int { return rapid.IntRange(-3, 3).Draw(t, label) }
	ends := map[string]int{}
	for n := range rapid.IntRange(0, 40).Draw(t, "records") {
		shard := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "shard")
		ends[shard] += rapid.IntRange(1, 12).Draw(t, "step")
		records = append(records, runnel.Record{
			Data: fmt.Appendf(nil, `{"text":%q,"n":%d,"time":%d,"int":%d,"double":%g,"user":"u%d"}`,
				rapid.SampledFrom([]string{"x", "y"}).Draw(t, "text"), rapid.IntRange(0, 1).Draw(t, "n"),
				rapid.IntRange(55, 62).Draw(t, "time"), small("int"), float64(small("double"))/4, n),
			ShardID: runnel.ShardID(shard),
			Position: runnel.Position{
				Sequence: runnel.SequenceNumber(fmt.Sprint(ends[shard] / 4)), Sub: int64(ends[shard] % 4),
			},
			ArrivalTime: time.UnixMilli(int64(100 + small("arrival"))),
		})
	}
	return records
}

// TestCuts checks that records give the same rows however they are cut into batches, and in
// whatever order the batches are merged.
func TestCuts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		records := drawRecords(t)
		whole, err := NewFolder(everyOp)
		if err != nil {
			t.Fatal(err)
		}
		part, _ := NewFolder(everyOp)
		var batches [][]Row
		for i := range records {
			if err := whole.Add(&records[i]); err != nil {
				t.Fatal(err)
			}
			if err := part.Add(&records[i]); err != nil {
				t.Fatal(err)
			}
			if i == len(records)-1 || rapid.IntRange(0, 4).Draw(t, "cut") == 0 {
				batches = append(batches, part.Rows())
				part.Reset()
			}
		}
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "order of the batches"), 0))
		random.Shuffle(len(batches), func(i, j int) { batches[i], batches[j] = batches[j], batches[i] })
		merged := map[string]*Row{}
		for _, rows := range batches {
			for i := range rows {
				key := fmt.Sprint(rows[i].Keys, rows[i].Bucket)
				if into := merged[key]; into == nil {
					merged[key] = &rows[i]
				} else if err := everyOp.Merge(into, &rows[i]); err != nil {
					t.Fatal(err)
				}
			}
		}
		if len(merged) != whole.Len() {
			t.Fatalf("%d rows merged, %d at once", len(merged), whole.Len())
		}
		for _, want := range whole.Rows() {
			if got := merged[fmt.Sprint(want.Keys, want.Bucket)]; !reflect.DeepEqual(*got, want) {
				t.Fatalf("merged %v\nat once %v", *got, want)
			}
		}
	})
}
