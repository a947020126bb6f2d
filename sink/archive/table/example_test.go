package table_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/sink"
	"github.com/runnel-stream/runnel/sink/archive"
	"github.com/runnel-stream/runnel/sink/archive/table"
)

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// A worker's archive and its table by hour: each record is in the folder of its own hour.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "archive")
	check(err)
	defer os.RemoveAll(dir)
	store, err := archive.NewDirStore(dir)
	check(err)
	byHour, err := table.Open(ctx, table.Config{
		Store: store, Name: "by-hour", Layout: table.Hour, Stream: "orders",
	})
	check(err)
	deriver := byHour.Start(ctx, table.Options{})
	defer deriver.Close()
	a, err := archive.New(archive.Config{Store: store, OnTip: deriver.Take})
	check(err)

	at := runnel.Position{Sequence: "1001"}
	arrival := time.Date(2020, 2, 2, 15, 55, 0, 0, time.UTC)
	w, err := a.Open(ctx, sink.Shard{
		Stream: "orders", Created: arrival.Add(-time.Hour), ID: "shardId-000000000000",
	})
	check(err)
	_, err = w.Write(ctx, sink.Batch{Through: at, Records: []runnel.Record{{
		PartitionKey: "order-17", Data: []byte(`{"event":"paid"}`),
		ShardID: "shardId-000000000000", Position: at, ArrivalTime: arrival,
	}}})
	check(err)
	_, err = w.Flush(ctx)
	check(err)
	check(deriver.Wait(ctx))
	listing, err := store.List(ctx, "tables/by-hour/2020/02/02/15")
	check(err)
	fmt.Println(listing.Objects)
	// Output:
	// [1580655300000-shardId-000000000000-001-0-0000000000.ndjson.gz]
}
