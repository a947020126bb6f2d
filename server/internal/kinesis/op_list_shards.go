package kinesis

import (
	"context"

	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/server/internal/catalogue"
)

type listShardsInput struct {
	target
	NextToken               *string
	ExclusiveStartShardID   *string `json:"ExclusiveStartShardId"`
	MaxResults              *integer
	StreamCreationTimestamp *timestamp
	ShardFilter             *shardFilter
}

// maxListShards is both the default and the maximum of one call (AWS, "ListShards").
const maxListShards = 1000

func (in *listShardsInput) validate(v *violations) {
	if in.ShardFilter != nil {
		in.ShardFilter.validate(v)
	}
	if in.NextToken == nil {
		if in.StreamName == nil && in.StreamARN == nil {
			v.fail(invalid("Either NextToken or StreamName should be provided."))
		}
		in.target.validateOptional(v)
		return
	}
	in.target.validateOptional(v)
	together := func(there bool, member string) {
		if there {
			v.fail(invalid("NextToken and %s cannot be provided together.", member))
		}
	}
	together(in.StreamName != nil, "StreamName")
	together(in.StreamARN != nil, "StreamARN")
	together(in.ExclusiveStartShardID != nil, "ExclusiveStartShardId")
	together(in.StreamCreationTimestamp != nil, "StreamCreationTimestamp")
	together(in.ShardFilter != nil, "ShardFilter")
}

type listShardsOutput struct {
	Shards    []shardDescription
	NextToken *string `json:",omitempty"`
}

// listShards lists a stream's shards by id: the open ones, and the closed ones until their data has
// expired.
func (s *Service) listShards(
	ctx context.Context, world wire.World, in *listShardsInput,
) (any, error) {
	sealer := s.sealer.Load()
	at := page{Filter: in.ShardFilter}
	var st *catalogue.Stream
	var now moment
	var err error
	if in.NextToken == nil {
		st, now, err = s.streams.viewTarget(ctx, world, &in.target)
		if err == nil && !in.created(st) {
			err = streamNotFound(world, st.Name)
		}
		if in.ExclusiveStartShardID != nil {
			at.After = *in.ExclusiveStartShardID
		}
	} else {
		at, err = sealer.openPage(sealShardsPage, world, *in.NextToken, s.streams.clock.read())
		if err != nil {
			return nil, err
		}
		st, now, err = s.streams.view(ctx, world, at.Stream)
		if err == nil && (st == nil || st.Created != at.Created) {
			err = streamNotFound(world, at.Stream)
		}
	}
	if err != nil {
		return nil, err
	}
	if status := st.Status(now); status == catalogue.StatusCreating {
		return nil, notActive(st, status)
	}
	shards := st.Listed(now)
	if at.Filter != nil {
		shards = at.Filter.apply(st, now)
	}
	limit := maxListShards
	if in.MaxResults != nil {
		limit = min(limit, int(*in.MaxResults))
	}
	shards, more := shardPage(shards, at.After, limit)
	out := listShardsOutput{Shards: describeShards(shards)}
	if more {
		at.Issued, at.Stream, at.Created = now.Elapsed, st.Name, st.Created
		at.After = shards[len(shards)-1].ID()
		out.NextToken, err = sealer.sealPage(sealShardsPage, world, at)
	}
	return &out, err
}

// created reports whether the stream has the creation time in the request. Some clients know that
// in whole seconds only.
func (in *listShardsInput) created(st *catalogue.Stream) bool {
	if in.StreamCreationTimestamp == nil {
		return true
	}
	at := int64(*in.StreamCreationTimestamp)
	return at == st.Created || (at%1000 == 0 && at == st.Created/1000*1000)
}
