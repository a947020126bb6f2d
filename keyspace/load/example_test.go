package load_test

import (
	"fmt"

	"github.com/runnel-stream/runnel/keyspace"
	"github.com/runnel-stream/runnel/keyspace/load"
)

// The skew of some bytes over the four shards of a new stream, with a limit of 500 for a shard.
func ExampleSkew() {
	skew, err := load.NewSkew(keyspace.Uniform(4), 100)
	if err != nil {
		fmt.Println(err)
		return
	}
	for name, bytes := range map[string]uint64{"alice": 600, "bob": 100, "carol": 80, "dave": 20} {
		skew.Add(keyspace.Of(name), name, bytes)
	}
	report := skew.Report(500, 1)
	fmt.Printf("peak %d of %d, peak to mean %.1f, %d above the limit\n",
		report.Peak, report.Total, report.PeakToMean, report.Over)
	for _, hot := range report.Hot {
		fmt.Println(hot.Name, hot.Weight, "in shard", hot.Shard, "alone:", hot.Alone)
	}
	// Output:
	// peak 600 of 800, peak to mean 3.0, 1 above the limit
	// alice 600 in shard 1 alone: true
}

// The heaviest of many names with few counters.
func ExampleHeavy() {
	heavy := load.NewHeavy(3)
	for range 10 {
		for _, name := range []string{"a", "hot", "b", "hot", "c", "hot"} {
			heavy.Add(keyspace.Of(name), name, 1)
		}
	}
	top := heavy.Top(1)[0]
	fmt.Println(top.Name, "weighs", top.AtLeast(), "to", top.Weight, "of", heavy.Total())
	// Output:
	// hot weighs 30 to 30 of 60
}
