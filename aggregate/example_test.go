package aggregate_test

import (
	"fmt"
	"time"

	"github.com/runnel-stream/runnel/aggregate"
)

// A producer freezes a unit; a consumer reads it twice and delivers it once.
func Example() {
	unit := aggregate.Unit{Producer: aggregate.ProducerID{7}, Number: 17, Low: 12}
	var encoder aggregate.Encoder
	for i, text := range []string{"created", "paid", "sent"} {
		record := aggregate.Record{PartitionKey: "order-1", Data: []byte(text)}
		if i == 0 {
			record.Tags = unit.AppendTo(nil)
		}
		if encoder.SizeWith(record) > 256<<10 {
			break
		}
		if err := encoder.Add(record); err != nil {
			panic(err)
		}
	}
	frozen := encoder.Seal(nil)

	var decoder aggregate.Decoder
	var filter aggregate.Filter
	for range 2 {
		if !decoder.Open(frozen) {
			panic("an ordinary record")
		}
		for sub, record := range filter.Pass(&decoder, time.Now()) {
			fmt.Println(sub, record.PartitionKey, string(record.Data))
		}
	}
	fmt.Println(filter.Counts.Fresh, "unit,", filter.Counts.Doubles, "double")
	// Output:
	// 0 order-1 created
	// 1 order-1 paid
	// 2 order-1 sent
	// 1 unit, 1 double
}

// Decode opens an aggregate of any producer, the KPL included.
func ExampleDecode() {
	var encoder aggregate.Encoder
	for _, key := range []string{"order-1", "order-2"} {
		record := aggregate.Record{PartitionKey: key, Data: []byte("created")}
		if err := encoder.Add(record); err != nil {
			panic(err)
		}
	}
	records, ok := aggregate.Decode(nil, encoder.Seal(nil))
	for sub, record := range records {
		fmt.Println(sub, record.PartitionKey, string(record.Data))
	}
	_, ordinary := aggregate.Decode(nil, []byte("created"))
	fmt.Println(ok, ordinary)
	// Output:
	// 0 order-1 created
	// 1 order-2 created
	// true false
}

// A child shard's filter begins with all that its parents' filters know.
func ExampleUnion() {
	now := time.Now()
	unit := aggregate.Unit{Producer: aggregate.ProducerID{7}, Number: 1, Low: 1}
	lane := aggregate.LaneOf("order-1", "")
	parent := new(aggregate.Filter)
	fmt.Println(parent.Admit(unit, lane, now) == aggregate.VerdictFresh)
	child := aggregate.Union(parent)
	fmt.Println(child.Admit(unit, lane, now) == aggregate.VerdictDouble)
	// Output:
	// true
	// true
}
