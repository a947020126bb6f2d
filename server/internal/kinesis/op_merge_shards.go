package kinesis

import (
	"context"

	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/keyspace"
	"github.com/runnel-stream/runnel/server/internal/catalogue"
	"github.com/runnel-stream/runnel/server/internal/wal"
)

type mergeShardsInput struct {
	target
	ShardToMerge         *string
	AdjacentShardToMerge *string
}

func (in *mergeShardsInput) validate(v *violations) {
	in.target.validate(v)
}

// mergeShards replaces two adjacent shards by one, at the end of UPDATING. ShardToMerge must be the
// lower one (kinesalite, test/mergeShards.js; AWS's page does not say so).
func (s *Service) mergeShards(
	ctx context.Context, world wire.World, in *mergeShardsInput,
) (any, error) {
	ids := []string{*in.ShardToMerge, *in.AdjacentShardToMerge}
	return nil, s.streams.reshard(ctx, world, &in.target, ids, func(
		tx *wal.Tx, st *catalogue.Stream, shards []uint32, now moment,
	) error {
		if status := st.Status(now); !st.Serves(now) {
			return notActive(st, status)
		}
		first, err := reshardable(st, shards[0], now)
		if err != nil {
			return err
		}
		second, err := reshardable(st, shards[1], now)
		if err != nil {
			return err
		}
		if !first.Range.Precedes(second.Range) {
			return invalid("Shards %s and %s in stream %s under account %s are not an adjacent "+
				"pair of shards eligible for merging",
				first.ID(), second.ID(), st.Name, world.Account)
		}
		if err := mayReshard(st, "MergeShards", now); err != nil {
			return err
		}
		step := catalogue.Step{
			From: []int{st.Piece(first), st.Piece(second)},
			To:   []keyspace.Range{first.Range.Join(second.Range)},
		}
		return s.resharder.reshard(tx, st, []catalogue.Step{step}, now)
	})
}
