package rollup_test

import (
	"fmt"
	"log"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/sink/rollup"
)

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// parse reads a field as the command's flags have it.
func parse(text string) rollup.Field {
	field, err := rollup.ParseField(text)
	check(err)
	return field
}

var edits = rollup.Definition{
	Keys:   []rollup.Field{parse("/channel")},
	Bucket: time.Minute,
	Time:   "/time",
	Columns: []rollup.Column{
		{Op: rollup.Count},
		{Op: rollup.Sum, Field: parse("/added:int")},
		{Op: rollup.Last, Field: parse("/user")},
	},
}

// fold returns the rows of some records, which are numbered from first on.
func fold(first int, data ...string) []rollup.Row {
	folder, err := rollup.NewFolder(edits)
	check(err)
	for n, text := range data {
		err := folder.Add(&runnel.Record{
			Data:        []byte(text),
			ShardID:     "shardId-000000000000",
			Position:    runnel.Position{Sequence: runnel.SequenceNumber(fmt.Sprint(first + n))},
			ArrivalTime: time.Date(2026, 1, 2, 3, 5, 0, 0, time.UTC),
		})
		if err != nil {
			fmt.Println(err)
		}
	}
	return folder.Rows()
}

func show(row rollup.Row) {
	fmt.Printf("%s %s: %d edits, %d added, last by %s\n", row.Keys[0].Text,
		row.Bucket.Format("15:04"), row.Values[0].Int, row.Values[1].Int, row.Values[2].Text)
}

// Edits of two channels become a row for each channel and minute. A record that lacks a field is
// in no row.
func Example() {
	for _, row := range fold(1,
		`{"channel":"#en","time":"2026-01-02T03:04:05Z","added":10,"user":"ann"}`,
		`{"channel":"#de","time":"2026-01-02T03:04:06Z","added":7,"user":"bob"}`,
		`{"channel":"#en","time":"2026-01-02T03:04:59Z","added":5,"user":"cem"}`,
		`{"channel":"#en","time":"2026-01-02T03:05:00Z","added":1,"user":"dot"}`,
		`{"channel":"#en","time":"2026-01-02T03:05:01Z","user":"eve"}`,
	) {
		show(row)
	}
	// Output:
	// bad record: it has no /added
	// #de 03:04: 1 edits, 7 added, last by bob
	// #en 03:04: 2 edits, 15 added, last by cem
	// #en 03:05: 1 edits, 1 added, last by dot
}

// Two batches have records of one minute. The later batch has an earlier record, so the last user
// is that of the first batch.
func ExampleDefinition_Merge() {
	stored := fold(1, `{"channel":"#en","time":"2026-01-02T03:04:50Z","added":10,"user":"ann"}`)
	batch := fold(2, `{"channel":"#en","time":"2026-01-02T03:04:49Z","added":5,"user":"bob"}`)
	check(edits.Merge(&stored[0], &batch[0]))
	show(stored[0])
	// Output: #en 03:04: 2 edits, 15 added, last by ann
}

// The flags of a command become a definition. Its text says what its table has.
func ExampleParseField() {
	bucket, err := rollup.ParseBucket("1h")
	check(err)
	fmt.Println(rollup.Definition{
		Keys:    []rollup.Field{parse("repo=/repo/name")},
		Bucket:  bucket,
		Columns: []rollup.Column{{Op: rollup.Max, Field: parse("/size:int")}},
	})
	// Output:
	// {"keys":[{"name":"repo","pointer":"/repo/name","type":"text"}],"bucket":"1h0m0s","columns":[{"op":"max","name":"max_size","pointer":"/size","type":"int"}]}
}
