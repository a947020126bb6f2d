package reshard_test

import (
	"context"
	"fmt"
	"log"

	"github.com/runnel-stream/runnel/keyspace"
	"github.com/runnel-stream/runnel/keyspace/load"
	"github.com/runnel-stream/runnel/keyspace/plan"
	"github.com/runnel-stream/runnel/reshard"
	"github.com/runnel-stream/runnel/runneltest"
)

// A load that was seen is planned for, and the plan applied. Here the load is written down; from
// a stream it comes with Observe.
func Example() {
	ctx := context.Background()
	server, err := runneltest.Start(ctx, runneltest.WithStream("orders", 2),
		runneltest.WithStreamDelay(-1))
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	client := server.Kinesis()

	histogram := load.NewHistogram(1 << 16)
	for key, kibibytes := range map[string]uint64{"a": 500, "b": 30, "c": 400, "d": 20} {
		histogram.Add(keyspace.Of(key), kibibytes)
	}
	shards, err := reshard.List(ctx, client, "orders")
	if err != nil {
		log.Fatal(err)
	}
	planned, err := plan.ForLoad(reshard.OpenRanges(shards), histogram.Points(), plan.Goal{Target: 700})
	if err != nil {
		log.Fatal(err)
	}
	for _, shard := range planned.Final {
		fmt.Println(shard.Load, "KiB/s of 700")
	}
	err = reshard.Apply(ctx, client, "orders", planned, func(step plan.Step, s reshard.StepState) {
		fmt.Println(step.Kind, s)
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// 500 KiB/s of 700
	// 400 KiB/s of 700
	// 50 KiB/s of 700
	// split begun
	// split done
}

// OpenRanges are the input of a plan: closed shards have no place in it.
func ExampleOpenRanges() {
	halves := keyspace.Uniform(2)
	shards := []reshard.Shard{
		{ID: "shardId-000000000000", Range: keyspace.All()}, // closed by a split
		{ID: "shardId-000000000001", Range: halves[0], Open: true},
		{ID: "shardId-000000000002", Range: halves[1], Open: true},
	}
	fmt.Println(len(reshard.OpenRanges(shards)), keyspace.Tiles(reshard.OpenRanges(shards)))
	// Output: 2 <nil>
}
