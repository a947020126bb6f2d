// Package reshard changes the shards of a stream by a plan, and looks at what the plan is made
// of: which shards there are, and where in the key space a stream's load falls.
//
// The plans are package keyspace's, and pure; here is what talks to the stream:
//
//	load := load.NewHistogram(1 << 16)
//	seen, err := reshard.Observe(ctx, client, "orders", reshard.Window{}, func(s reshard.Seen) {
//		load.Add(s.Hash, uint64(s.Bytes))
//	})
//	shards, err := reshard.List(ctx, client, "orders")
//	plan, err := plan.ForLoad(reshard.Open(shards), load.Points(), plan.Goal{
//		Target: uint64(700e3 * seen.Took.Seconds()),
//	})
//	err = reshard.Apply(ctx, client, "orders", plan, nil)
//
// Autoscale is the loop that does so window by window. What it decides, and why, is an
// Autoscaler's: pure, with the thresholds of a Policy, fed with Samples.
//
// An Apply that was interrupted, by kill -9 too, is gone on with by the same plan: a plan speaks
// of hash ranges, and the ranges that are open tell which of its steps are done.
package reshard
