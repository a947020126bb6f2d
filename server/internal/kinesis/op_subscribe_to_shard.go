package kinesis

import (
	"context"
	"errors"

	"github.com/runnel-stream/runnel/internal/budget"
	"github.com/runnel-stream/runnel/internal/shardid"
	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/server/internal/catalogue"
	"github.com/runnel-stream/runnel/server/internal/shardlog"
)

type subscribeToShardInput struct {
	ConsumerARN      *string
	ShardID          *string `json:"ShardId"`
	StartingPosition *startingPosition

	sending *budget.Share
}

// sendsBy is part of large.
func (in *subscribeToShardInput) sendsBy(memory *budget.Share) { in.sending = memory }

// startingPosition is the model's StartingPosition.
type startingPosition struct {
	Type           *string
	SequenceNumber *string
	Timestamp      *timestamp
}

func (in *subscribeToShardInput) validate(v *violations) { in.position().validate(v) }

func (in *subscribeToShardInput) position() position {
	return position{
		operation: "SubscribeToShard",
		kind:      in.StartingPosition.Type,
		number:    in.StartingPosition.SequenceNumber,
		at:        in.StartingPosition.Timestamp,
	}
}

// subscribeToShard begins a subscription: see type subscription. Every error before the event
// stream begins is an ordinary answer. The order of the checks is a guess.
func (s *Service) subscribeToShard(
	ctx context.Context, world wire.World, in *subscribeToShardInput,
) (any, error) {
	st, c, now, err := s.streams.viewConsumer(ctx, world, *in.ConsumerARN)
	if err != nil {
		return nil, err
	}
	if st.ConsumerStatus(c, now) != catalogue.StatusActive {
		// Seen live, spaces included: awslabs/kinesis-hot-shard-advisor#37.
		return nil, fail(codeInUse, "Consumer %s with creation timestamp %d under stream: %s , "+
			"account %s is not in ACTIVE status.", c.Name, c.Created/1000, st.Name, world.Account)
	}
	index, ok := shardid.Parse(*in.ShardID)
	if !ok {
		return nil, couldNotFindShard(world, st.Name, *in.ShardID)
	}
	u := &subscription{
		streams: s.streams, limits: s.limits, fanOut: s.fanOut, sending: in.sending,
		consumer: *in.ConsumerARN, stream: st, shard: st.Shard(index, now),
		key: fanOutKey{st.Key(), st.Created, c.Name, c.Created, index},
	}
	if u.shard != nil {
		u.records = s.shards.Shard(u.shard.Log)
	}
	if u.records == nil {
		return nil, shardMissing(world, st.Name, shardid.Of(index))
	}
	u.next, err = in.position().resolve(ctx, st, u.shard, u.records, now)
	if errors.Is(err, shardlog.ErrDeleted) {
		err = shardMissing(world, st.Name, shardid.Of(index))
	}
	if err != nil {
		return nil, err
	}
	if err := s.limits.subscribe(st, u.shard, c.Name, now); err != nil {
		return nil, err
	}
	u.bell.signals.changed = true // since st was looked at, perhaps
	if err := s.fanOut.begin(u, s.streams.clock.read().Elapsed); err != nil {
		return nil, err
	}
	return u, nil
}
