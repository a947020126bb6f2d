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

// Shard is a shard of a stream.
type Shard struct {
	ID      runnel.ShardID   // the shard's id
	Parents []runnel.ShardID // none, one (of a split) or two (of a merge); they may be gone
	Range   keyspace.Range   // its hash keys
	Open    bool             // it takes records
}

// List returns the shards of a stream, open and closed, in the order of the API, which is by id.
// Shards past the retention period are not included. Throttling and outages are retried for some
// seconds.
func List(ctx context.Context, client Lister, stream string) ([]Shard, error) {
	listed, err := shardmap.List(ctx, client, stream, nil)
	if err != nil {
		return nil, err
	}
	shards := make([]Shard, len(listed))
	for i, s := range listed {
		shards[i] = Shard{ID: s.ID, Parents: s.Parents, Range: s.Range, Open: s.Open()}
	}
	return shards, nil
}

// OpenRanges returns the ranges of the open shards, in the order of shards.
func OpenRanges(shards []Shard) []keyspace.Range {
	var ranges []keyspace.Range
	for _, s := range shards {
		if s.Open {
			ranges = append(ranges, s.Range)
		}
	}
	return ranges
}
