// Package follow reads all shards of a stream without leases, parents before children over splits
// and merges. It is for programs that look at a stream and keep no checkpoint, such as `runnel
// tail`.
//
// Aggregated records are opened. An aggregate.Filter drops the doubles that a producer's retries
// left in the stream; a child shard takes it over from its parents. The filter only knows the
// records since the reading began. If the first copy of a unit lies before that, the next copy is
// delivered.
package follow
