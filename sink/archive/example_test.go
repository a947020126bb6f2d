package archive_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/sink"
	"github.com/runnel-stream/runnel/sink/archive"
)

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// archived makes an archive of three records in a new folder. The caller calls remove.
func archived(ctx context.Context) (dir string, remove func()) {
	dir, err := os.MkdirTemp("", "archive")
	check(err)
	a, err := archive.New(archive.Config{Dir: dir})
	check(err)
	w, err := a.Open(ctx, sink.Shard{
		Stream: "orders", Created: time.UnixMilli(1_700_000_000_000), ID: "shardId-000000000000",
	})
	check(err)
	batch := sink.Batch{}
	for n, event := range []string{"created", "paid", "shipped"} {
		batch.Through.Sequence = runnel.SequenceNumber(fmt.Sprint(1001 + n))
		batch.Records = append(batch.Records, runnel.Record{
			PartitionKey: "order-17", Data: fmt.Appendf(nil, `{"event":%q}`, event),
			ShardID: "shardId-000000000000", Position: batch.Through,
		})
	}
	_, err = w.Write(ctx, batch)
	check(err)
	_, err = w.End(ctx) // commits the records and the end of the shard
	check(err)
	check(w.Close())
	return dir, func() { check(os.RemoveAll(dir)) }
}

// Two workers hold one shard. The first commit wins; the other worker adopts it and goes on after
// it, so each record is in the archive once.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "archive")
	check(err)
	defer os.RemoveAll(dir)
	shard := sink.Shard{
		Stream: "orders", Created: time.UnixMilli(1_700_000_000_000), ID: "shardId-000000000000",
	}
	batch := sink.Batch{
		Records: []runnel.Record{{
			PartitionKey: "order-17", Data: []byte("created"), ShardID: shard.ID,
			Position: runnel.Position{Sequence: "1001"},
		}},
		Through: runnel.Position{Sequence: "1001"},
	}
	a, err := archive.New(archive.Config{Dir: dir})
	check(err)
	for range 2 {
		w, err := a.Open(ctx, shard)
		check(err)
		fmt.Println("goes on after", w.Committed().End)
		if w.Committed().End.Less(batch.Through) {
			_, err = w.Write(ctx, batch)
			check(err)
		}
		_, err = w.Flush(ctx)
		check(err)
		check(w.Close())
	}
	// Output:
	// goes on after start
	// goes on after 1001
}

// Verify proves that every link follows the one before it and holds what it describes.
func ExampleVerify() {
	ctx := context.Background()
	dir, remove := archived(ctx)
	defer remove()
	report, err := archive.Verify(ctx, dir, archive.VerifyOptions{})
	check(err)
	fmt.Println(report.Shards, "shard,", report.Links, "link,", report.Records, "records:",
		report.OK())
	// Output: 1 shard, 1 link, 3 records: true
}

// A Reader yields the records of a stream, in the order of each key.
func ExampleReader_All() {
	ctx := context.Background()
	dir, remove := archived(ctx)
	defer remove()
	reader, err := archive.Open(dir)
	check(err)
	streams, err := reader.Streams(ctx)
	check(err)
	for record, err := range reader.All(ctx, streams[0]) {
		check(err)
		fmt.Printf("%s %s %s\n", record.Position, record.PartitionKey, record.Data)
	}
	// Output:
	// 1001 order-17 {"event":"created"}
	// 1002 order-17 {"event":"paid"}
	// 1003 order-17 {"event":"shipped"}
}

// AppendRecord writes a record as a line of JSON, and ParseRecord reads it.
func ExampleAppendRecord() {
	line := archive.AppendRecord(nil, &runnel.Record{
		PartitionKey: "order-17", Data: []byte(`{"event":"paid"}`), ShardID: "shardId-000000000000",
		Position: runnel.Position{Sequence: "1002"},
	})
	fmt.Printf("%s\n", line)
	record, err := archive.ParseRecord(line)
	fmt.Println(record.PartitionKey, err)
	// Output:
	// {"partitionKey":"order-17","sequenceNumber":"1002","subSequenceNumber":0,"shardId":"shardId-000000000000","data":{"event":"paid"}}
	// order-17 <nil>
}
