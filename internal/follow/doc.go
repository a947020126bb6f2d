// Package follow reads all shards of a stream without leases, parents before children over
// splits and merges: for programs that look at a stream and keep no checkpoint, as `runnel tail`.
//
// Aggregated records are opened. The doubles that a producer's retries left in the stream are
// dropped by an aggregate.Filter, which a child shard takes over from its parents. What a
// double's first copy would be is known only from where the reading began: a copy whose first
// one stands before that is delivered.
package follow
