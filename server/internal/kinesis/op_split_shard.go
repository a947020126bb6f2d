package kinesis

import (
	"context"

	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/keyspace"
	"github.com/runnel-stream/runnel/server/internal/catalogue"
	"github.com/runnel-stream/runnel/server/internal/wal"
)

type splitShardInput struct {
	target
	ShardToSplit       *string
	NewStartingHashKey *string

	at keyspace.Key
}

func (in *splitShardInput) validate(v *violations) {
	in.target.validate(v)
	var err error
	if in.at, err = keyspace.Parse(*in.NewStartingHashKey); err != nil {
		in.at = keyspace.Max() // 39 digits beyond all keys: inside of no shard
	}
}

// splitShard replaces a shard by two, at the end of UPDATING.
func (s *Service) splitShard(
	ctx context.Context, world wire.World, in *splitShardInput,
) (any, error) {
	ids := []string{*in.ShardToSplit}
	return nil, s.streams.reshard(ctx, world, &in.target, ids, func(
		tx *wal.Tx, st *catalogue.Stream, shards []uint32, now moment,
	) error {
		if status := st.Status(now); !st.Serves(now) {
			return notActive(st, status)
		}
		sh, err := reshardable(st, shards[0], now)
		if err != nil {
			return err
		}
		if !sh.Range.Start.Add(keyspace.Key{Lo: 1}).Less(in.at) || !in.at.Less(sh.Range.End) {
			return invalid("NewStartingHashKey %s used in SplitShard() on shard %s in stream %s "+
				"under account %s is not both greater than one plus the shard's "+
				"StartingHashKey %s and less than the shard's EndingHashKey %s.",
				*in.NewStartingHashKey, sh.ID(), st.Name, world.Account, sh.Range.Start,
				sh.Range.End)
		}
		if err := mayReshard(st, "SplitShard", now); err != nil {
			return err
		}
		if err := s.limits.mayHoldShards(world, 1); err != nil {
			return err
		}
		low, high := sh.Range.SplitAt(in.at)
		step := catalogue.SplitStep(st.Piece(sh), low, high)
		return s.resharder.reshard(tx, st, []catalogue.Step{step}, now)
	})
}
