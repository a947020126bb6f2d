package kinesis

import (
	"context"

	"github.com/runnel-stream/runnel/internal/awswire"
	"github.com/runnel-stream/runnel/internal/wal"
	"github.com/runnel-stream/runnel/keyspace"
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
		v.fail(invalid("Invalid NewStartingHashKey. NewStartingHashKey must be in the range: "+
			"[0, 2^128-1]. Specified value was %s", *in.NewStartingHashKey))
	}
}

// splitShard closes a shard and opens two in its place.
func (s *Service) splitShard(
	ctx context.Context, world awswire.World, in *splitShardInput,
) (any, error) {
	return nil, s.changeStream(ctx, world, &in.target, func(
		tx *wal.Tx, st *stream, now int64,
	) error {
		if status := st.status(now); status == statusCreating || status == statusDeleting {
			return notActive(st, status)
		}
		sh, err := reshardable(st, *in.ShardToSplit, now)
		if err != nil {
			return err
		}
		if !sh.Range.Start.Add(keyspace.Key{Lo: 1}).Less(in.at) || !in.at.Less(sh.Range.End) {
			return invalid("NewStartingHashKey %s used in SplitShard() on shard %s in stream %s "+
				"under account %s is not both greater than one plus the shard's "+
				"StartingHashKey %s and less than the shard's EndingHashKey %s.",
				in.at, sh.id(), st.Name, world.Account, sh.Range.Start, sh.Range.End)
		}
		if err := mayReshard(st, "SplitShard", now); err != nil {
			return err
		}
		if err := s.mayHoldShards(world, 1); err != nil {
			return err
		}
		low, high := sh.Range.SplitAt(in.at)
		return s.catalogue.reshard(tx, st, []*shard{sh}, []keyspace.Range{low, high},
			now, s.until(now))
	})
}
