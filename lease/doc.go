// Package lease is the Kinesis Client Library's lease table: a DynamoDB table with one row per
// shard. The workers of a fleet divide the shards among themselves by it, and record in it how far
// each shard has been processed.
//
// The rows are those of KCL 2.x (awslabs/amazon-kinesis-client, DynamoDBLeaseSerializer), so that
// Java workers can share the table. The protocol is one counter. Every write of an owner raises
// leaseCounter by one, on the condition that the counter and the owner are as the writer last saw
// them. A row has lost its owner if its counter does not change for the failover time, measured by
// the observer's own monotonic clock. The first worker that then raises the counter is the next
// owner, and every later write of the old owner fails. No wall clock is compared, and no counter is
// ever set back.
//
// A lease is for progress, not for safety: an owner that was paused between two writes cannot know
// that another worker has taken its lease. The sink is the fence for effects that must happen
// exactly once.
//
// Attributes of our own begin with "runnel". The KCL leaves attributes that it does not know alone,
// and so does this package, since every change is an UpdateItem of single attributes.
//
// Table holds the conditional writes. Watch observes which owners are alive. Plan is a pure
// function that decides which leases a worker should take or steal.
package lease
