package runnel

import "github.com/runnel-stream/runnel/keyspace"

// ShardID names a shard within its stream, as "shardId-000000000003".
type ShardID string

// Shard is a shard of a stream, as the stream lists it.
type Shard struct {
	// ID names it within its stream.
	ID ShardID
	// Parents are the shards that were split or merged into it: none, one (of a split) or two (of a
	// merge). The stream may no longer list them.
	Parents []ShardID
	// Range is the range of its hash keys.
	Range keyspace.Range
	// First is its first sequence number, and Last its last one: "" while it is open. Both are ""
	// if a shard was named by the end of its parent, and not by the list.
	First, Last SequenceNumber
}

// Open reports whether the shard takes records.
func (s Shard) Open() bool { return s.Last == "" }
