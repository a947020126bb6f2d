// Package lease is the Kinesis Client Library's lease table: one row per shard in a DynamoDB
// table, by which the workers of a fleet divide the shards among themselves, and in which they
// keep how far each shard has been processed.
//
// The rows are those of KCL 2.x (awslabs/amazon-kinesis-client, DynamoDBLeaseSerializer), so
// that Java workers can share the table. The protocol is one counter: every write of an owner
// raises leaseCounter by one and is conditional on the counter and the owner that the writer
// last saw. A row whose counter does not change for the failover time, by the observer's own
// monotonic clock, has lost its owner; whoever then raises the counter first is the next one,
// and every later write of the old owner fails. No wall clock is compared, and no counter is
// ever set back.
//
// A lease is for progress, not for safety: between two writes an owner that was paused cannot
// know that it has been robbed. What must happen exactly once is fenced by the sink.
//
// Attributes of our own begin with "runnel"; the KCL leaves attributes that it does not know
// alone, and so does this package, since every change is an UpdateItem of single attributes.
//
// Table holds the conditional writes, Watch sees which owners are alive, and Plan, which is
// pure, decides what a worker should take or steal.
package lease
