package plan_test

import (
	"fmt"

	"github.com/runnel-stream/runnel/keyspace"
	"github.com/runnel-stream/runnel/keyspace/load"
	"github.com/runnel-stream/runnel/keyspace/plan"
)

// A plan for a load: at most 700 KiB/s for each shard.
func ExampleForLoad() {
	histogram := load.NewHistogram(1 << 16)
	for key, kibibytes := range map[string]uint64{"a": 500, "b": 30, "c": 400, "d": 20} {
		histogram.Add(keyspace.Of(key), kibibytes)
	}
	p, err := plan.ForLoad(keyspace.Uniform(2), histogram.Points(), plan.Goal{Target: 700})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, step := range p.Steps {
		fmt.Println(step.Kind)
	}
	for _, shard := range p.Final {
		fmt.Println(shard.Load, "KiB/s")
	}
	// Output:
	// split
	// 500 KiB/s
	// 400 KiB/s
	// 50 KiB/s
}

// From two shards to three equal ones, and the progress of a stream that is halfway there.
func ExampleUniform() {
	p, err := plan.Uniform(keyspace.Uniform(2), 3, 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, step := range p.Steps {
		fmt.Println(step.Kind)
	}
	half := append(p.Steps[0].To, p.Open[1]) // the open ranges after the first step
	fmt.Println(p.Next(half), "of", len(p.Steps), "steps done")
	// Output:
	// split
	// split
	// merge
	// 1 of 3 steps done
}
