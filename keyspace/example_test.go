package keyspace_test

import (
	"fmt"

	"github.com/runnel-stream/runnel/keyspace"
)

// The shard of a partition key, in a new stream with four shards.
func ExampleOf() {
	shards := keyspace.Uniform(4)
	for _, partitionKey := range []string{"alice", "bob", "carol"} {
		hash := keyspace.Of(partitionKey)
		fmt.Println(partitionKey, hash, "shard", keyspace.Locate(shards, hash))
	}
	// Output:
	// alice 132283552702735894323332391932430538300 shard 1
	// bob 212164099741615454138234394844395612632 shard 2
	// carol 225470815991613724097277262010641228456 shard 2
}

// A split at the middle, and the merge of its halves.
func ExampleRange_SplitAt() {
	shard := keyspace.Uniform(4)[1]
	low, high := shard.SplitAt(shard.Middle())
	fmt.Printf("%.3f %.3f of the key space\n", low.Part(), high.Part())
	fmt.Println(low.Join(high) == shard)
	// Output:
	// 0.125 0.125 of the key space
	// true
}

// The ranges of a layout must cover the key space exactly once.
func ExampleTiles() {
	shards := keyspace.Uniform(2)
	fmt.Println(keyspace.Tiles(shards))
	fmt.Println(keyspace.Tiles(shards[:1]))
	// Output:
	// <nil>
	// the hash keys from 170141183460469231731687303715884105728 on are not covered
}

// Locate finds the shard of a partition key among the shards of a stream.
func ExampleLocate() {
	shards := keyspace.Uniform(4)
	for _, key := range []string{"order-17", "order-18"} {
		fmt.Println(key, keyspace.Locate(shards, keyspace.Of(key)))
	}
	// Output:
	// order-17 0
	// order-18 2
}
