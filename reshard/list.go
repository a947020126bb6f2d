package reshard

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/shardmap"
	"github.com/runnel-stream/runnel/keyspace"
)

// Lister is the part of the Kinesis API that List uses. *kinesis.Client implements it.
type Lister interface {
	ListShards(context.Context, *kinesis.ListShardsInput, ...func(*kinesis.Options)) (
		*kinesis.ListShardsOutput, error)
}

// List returns the shards of a stream, open and closed, in the order of the API, which is by id.
// stream is the stream's name or ARN, as in the other functions of this package.
// Shards past the retention period are not included. Throttling and outages are retried for some
// seconds.
func List(ctx context.Context, client Lister, stream string) ([]runnel.Shard, error) {
	return shardmap.List(ctx, client, stream, nil)
}

// OpenRanges returns the ranges of the open shards, in the order of shards.
func OpenRanges(shards []runnel.Shard) []keyspace.Range {
	var ranges []keyspace.Range
	for _, s := range shards {
		if s.Open() {
			ranges = append(ranges, s.Range)
		}
	}
	return ranges
}
