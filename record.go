package runnel

import "time"

// Record is one event of a stream.
//
// To put one, set PartitionKey, Data and, if the hash key is to be chosen, ExplicitHashKey.
// The other fields are set by reading.
type Record struct {
	// PartitionKey decides the shard and is the unit of order: 1 to 256 characters of UTF-8.
	PartitionKey string
	// ExplicitHashKey overrides the MD5 hash of the partition key: a decimal integer in
	// [0, 2^128-1]. Empty: none, or not known, since GetRecords does not return it.
	ExplicitHashKey string
	// Data is the event's bytes. A reader may keep them and must not change them.
	Data []byte

	// ShardID is the shard that the record was read from.
	ShardID ShardID
	// Position is the record's place in that shard.
	Position Position
	// ArrivalTime is when the stream took the record, in milliseconds. It never steps back
	// within a shard, and says nothing across shards.
	ArrivalTime time.Time
}
