package kinesis

import (
	"context"

	"github.com/runnel-stream/runnel/internal/wire"
)

type describeStreamInput struct {
	target
	Limit                 *integer
	ExclusiveStartShardID *string `json:"ExclusiveStartShardId"`
}

const (
	maxPage               = 10_000 // of every list
	defaultDescribeShards = 100    // and the most (the model's documentation of Limit)
)

func (in *describeStreamInput) validate(v *violations) {
	in.target.validate(v)
}

type describeStreamOutput struct {
	StreamDescription struct {
		streamSummary
		Shards        []shardDescription
		HasMoreShards bool
	}
}

func (s *Service) describeStream(
	ctx context.Context, world wire.World, in *describeStreamInput,
) (any, error) {
	st, now, err := s.streams.viewTarget(ctx, world, &in.target)
	if err != nil {
		return nil, err
	}
	after, limit := "", defaultDescribeShards
	if in.ExclusiveStartShardID != nil {
		after = *in.ExclusiveStartShardID
	}
	if in.Limit != nil {
		limit = min(limit, int(*in.Limit))
	}
	var out describeStreamOutput
	out.StreamDescription.streamSummary = summarise(st, now)
	shards, more := shardPage(st.Listed(now), after, limit)
	out.StreamDescription.Shards = describeShards(shards)
	out.StreamDescription.HasMoreShards = more
	return &out, nil
}
