package aggregate

import "crypto/md5" //nolint:gosec // see format.go

// Empty returns an aggregate without user records: a Kinesis record of which the KCL, and
// runnel's consumers, make nothing. It has a position all the same, and so marks a place in a
// shard.
//
// It holds a partition key that no record uses, since the KCL takes what has 16 bytes or fewer
// behind the magic number for an ordinary record (AggregatorUtil.deaggregate).
func Empty() []byte {
	message := appendCounted(nil, fieldPartitionKeys, []byte(OuterPartitionKey))
	sum := md5.Sum(message) //nolint:gosec // see format.go
	return append(append([]byte(magic), message...), sum[:]...)
}
