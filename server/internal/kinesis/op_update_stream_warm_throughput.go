package kinesis

import (
	"context"

	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/server/internal/catalogue"
)

type warmThroughputInput struct {
	target
	WarmThroughputMiBps *integer
}

func (in *warmThroughputInput) validate(v *violations) { in.target.validate(v) }

type warmThroughputOutput struct {
	StreamARN      string
	StreamName     string
	WarmThroughput warmThroughput
}

// updateWarmThroughput sets the throughput that an ACTIVE on-demand stream is to be ready for. The
// stream is UPDATING for the stream delay. The setting is stored and returned, but makes no shards,
// since without limits a shard takes whatever the machine does.
func (s *Service) updateWarmThroughput(
	ctx context.Context, world wire.World, in *warmThroughputInput,
) (any, error) {
	var out warmThroughputOutput
	err := s.streams.changeSettings(ctx, world, &in.target, true, func(
		st *catalogue.Stream, next *catalogue.Settings, now moment,
	) error {
		next.Warm = int64(*in.WarmThroughputMiBps)
		if err := mayWarm(s.streams.catalogue.Account(world), st.Mode, next.Warm, now); err != nil {
			return err
		}
		if err := mustBeActive(st, now); err != nil {
			return err
		}
		out = warmThroughputOutput{
			StreamARN:      st.ARN(),
			StreamName:     st.Name,
			WarmThroughput: warmThroughput{TargetMiBps: next.Warm, CurrentMiBps: st.Warm},
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &out, nil
}
