package aggregate

import "crypto/md5" //nolint:gosec // see format.go

// Empty returns an aggregate without user records. The KCL and runnel's consumers deliver nothing
// for it, but it has a sequence number and so marks a place in a shard. Package keytable uses it
// for the mark of a move.
//
// It holds a partition key that no record uses, since the KCL takes data with at most 16 bytes
// behind the magic number as an ordinary record (AggregatorUtil.deaggregate).
func Empty() []byte {
	message := appendCounted(nil, fieldPartitionKeys, []byte(OuterPartitionKey))
	sum := md5.Sum(message) //nolint:gosec // see format.go
	return append(append([]byte(magic), message...), sum[:]...)
}
