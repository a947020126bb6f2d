// Package reshard changes the shards of a stream by a plan. It also measures the input of a
// plan: the list of shards, and the distribution of the stream's load over the key space.
//
// The plans come from package keyspace/plan, which is pure. This package talks to the stream:
//
//	load := load.NewHistogram(1 << 16)
//	seen, err := reshard.Observe(ctx, client, "orders", reshard.Window{}, func(s reshard.Seen) {
//		load.Add(s.Hash, uint64(s.Bytes))
//	})
//	shards, err := reshard.List(ctx, client, "orders")
//	plan, err := plan.ForLoad(reshard.OpenRanges(shards), load.Points(), plan.Goal{
//		Target: uint64(700e3 * seen.Took.Seconds()),
//	})
//	err = reshard.Apply(ctx, client, "orders", plan, nil)
//
// Autoscale repeats this in a loop, once per window. An Autoscaler makes the decisions and gives
// the reasons. It is pure: its input is a sequence of Samples and the thresholds of a Policy. It
// gets no report on its decisions, but the shards of the next Sample. So it also sees changes by
// other programs, and a change that was interrupted needs no state.
//
// To continue an Apply that was interrupted, even by kill -9, call Apply again with the same
// plan. A plan consists of hash ranges, and the open ranges show which steps are done.
package reshard
