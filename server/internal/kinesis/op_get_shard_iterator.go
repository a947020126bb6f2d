package kinesis

import (
	"context"
	"errors"

	"github.com/runnel-stream/runnel/internal/shardid"
	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/server/internal/catalogue"
	"github.com/runnel-stream/runnel/server/internal/shardlog"
)

type getShardIteratorInput struct {
	target
	ShardID                *string `json:"ShardId"`
	ShardIteratorType      *string
	StartingSequenceNumber *string
	Timestamp              *timestamp
}

func (in *getShardIteratorInput) validate(v *violations) {
	in.target.validate(v)
	in.position().validate(v)
}

func (in *getShardIteratorInput) position() position {
	return position{
		operation: "GetShardIterator",
		kind:      in.ShardIteratorType,
		number:    in.StartingSequenceNumber,
		at:        in.Timestamp,
	}
}

type getShardIteratorOutput struct{ ShardIterator string }

// getShardIterator makes an iterator. Every type is resolved to a record's index now: LATEST means
// after the newest record at this moment, not at the first read.
func (s *Service) getShardIterator(
	ctx context.Context, world wire.World, in *getShardIteratorInput,
) (any, error) {
	name, err := in.name(world)
	if err != nil {
		return nil, err
	}
	index, ok := shardid.Parse(*in.ShardID)
	if !ok {
		return nil, couldNotFindShard(world, name, *in.ShardID)
	}
	st, now, err := s.streams.view(ctx, world, name)
	if err != nil {
		return nil, err
	}
	var sh *catalogue.Shard
	var records *shardlog.Shard
	if st != nil {
		if sh = st.Shard(index, now); sh != nil {
			records = s.shards.Shard(sh.Log)
		}
	}
	if records == nil {
		return nil, shardMissing(world, name, shardid.Of(index))
	}
	if err := s.limits.iterator(st, sh, now); err != nil {
		return nil, err
	}
	next, err := in.position().resolve(ctx, st, sh, records, now)
	if errors.Is(err, shardlog.ErrDeleted) {
		return nil, shardMissing(world, name, shardid.Of(index))
	}
	if err != nil {
		return nil, err
	}
	return &getShardIteratorOutput{s.sealer.Load().sealIterator(world, iterator{
		issued: now.Elapsed, created: st.Created, shard: index, place: records.Place(next),
		stream: name,
	})}, nil
}
