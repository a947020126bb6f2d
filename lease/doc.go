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
// Between workers of this package a lease changes hands politely. A worker asks (Table.Ask), which
// changes neither owner nor counter. The holder sees the ask in the answer to its next write, and
// passes the lease with its last checkpoint in one write (Table.Pass). The new owner finds the row
// by the index (Table.Owned) and adopts it (Table.Take). Until then the row has no hold.
//
// A person pauses a shard by its row (Table.Pause) in the same way: the holder sees it in the
// answer to its next write. The pause stays with the row over all owners.
//
// Table holds the writes. Watch observes which workers are alive. View.Plan is a pure function that
// assigns the leases to the workers.
package lease
