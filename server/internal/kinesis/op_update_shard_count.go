package kinesis

import (
	"context"

	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/keyspace"
	"github.com/runnel-stream/runnel/server/internal/catalogue"
	"github.com/runnel-stream/runnel/server/internal/wal"
)

type updateShardCountInput struct {
	target
	TargetShardCount *integer
	ScalingType      *string
}

func (in *updateShardCountInput) validate(v *violations) { in.target.validate(v) }

type updateShardCountOutput struct {
	StreamName        string
	CurrentShardCount int
	TargetShardCount  int
	StreamARN         string
}

// updateShardCount changes the stream to the target number of open shards of equal size, by splits
// and merges, at the end of UPDATING.
//
// The bounds are double and half of the present number (AWS, "UpdateShardCount"): for five shards,
// ten and three. AWS does not say how it rounds the half; "below half" is taken literally. If the
// shards are already as requested, the answer is the usual one, nothing changes, and the stream
// stays ACTIVE: a guess.
func (s *Service) updateShardCount(
	ctx context.Context, world wire.World, in *updateShardCountInput,
) (any, error) {
	name, err := in.name(world)
	if err != nil {
		return nil, err
	}
	count := int64(*in.TargetShardCount)
	var out *updateShardCountOutput
	err = s.streams.change(ctx, scaleSize(count), func(tx *wal.Tx, now moment) error {
		st := s.streams.catalogue.Find(world, name, now)
		if st == nil {
			return streamNotFound(world, name)
		}
		if err := mayReshard(st, "UpdateShardCount", now); err != nil {
			return err
		}
		open := int64(len(st.OpenShards()))
		if err := mayScale(open, count); err != nil {
			return err
		}
		if err := s.limits.mayHoldShards(st.World, count-open); err != nil {
			return err
		}
		out = &updateShardCountOutput{
			StreamName: name, CurrentShardCount: int(open), TargetShardCount: int(count),
			StreamARN: st.ARN(),
		}
		ranges := make([]keyspace.Range, open)
		for i, sh := range st.OpenShards() {
			ranges[i] = sh.Range
		}
		steps, err := planScale(ranges, int(count))
		if err != nil || len(steps) == 0 {
			return err
		}
		return s.resharder.reshard(tx, st, steps, now)
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// scaleSize returns about the largest frame of a scaling to so many shards. There are up to twice
// as many old shards; each old bound may have to go, and each new one to come.
func scaleSize(shards int64) int { return 4096 + 1600*int(min(shards, catalogue.MaxShards)) }

// mayScale returns an error if a stream cannot go from one number of open shards to another. The
// text about doubling is AWS's, as users quote it; the others follow it.
func mayScale(open, count int64) error {
	switch {
	case count > catalogue.MaxShards:
		return fail(codeLimit, "Target shard count or number of open shards cannot be greater "+
			"than %d. Current open shard count: %d Target shard count: %d",
			catalogue.MaxShards, open, count)
	case count > 2*open:
		return fail(codeLimit, "UpdateShardCount cannot scale up over double your current open "+
			"shard count. Current open shard count: %d Target shard count: %d", open, count)
	case 2*count < open:
		return fail(codeLimit, "UpdateShardCount cannot scale down below half your current open "+
			"shard count. Current open shard count: %d Target shard count: %d", open, count)
	}
	return nil
}
