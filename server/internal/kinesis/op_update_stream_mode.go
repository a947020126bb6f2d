package kinesis

import (
	"context"

	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/server/internal/catalogue"
)

type updateStreamModeInput struct {
	StreamARN           *string
	StreamModeDetails   *streamModeDetails
	WarmThroughputMiBps *integer
}

func (*updateStreamModeInput) validate(*violations) {}

// updateStreamMode changes the capacity mode of an ACTIVE stream. The stream keeps its shards (AWS,
// "Choose the right mode"), and is UPDATING for the stream delay. A change to ON_DEMAND can set a
// warm throughput; a change back removes it. A request for the present mode is no error and changes
// nothing (a guess).
func (s *Service) updateStreamMode(
	ctx context.Context, world wire.World, in *updateStreamModeInput,
) (any, error) {
	mode := *in.StreamModeDetails.StreamMode
	return nil, s.streams.changeSettings(ctx, world, &target{StreamARN: in.StreamARN}, true, func(
		st *catalogue.Stream, next *catalogue.Settings, now moment,
	) error {
		if err := mustBeActive(st, now); err != nil {
			return err
		}
		if err := s.limits.maySwitch(st, mode, now); err != nil {
			return err
		}
		if next.Mode = mode; mode == catalogue.ModeProvisioned {
			next.Warm = 0
		}
		if in.WarmThroughputMiBps != nil {
			next.Warm = int64(*in.WarmThroughputMiBps)
			account := s.streams.catalogue.Account(world)
			if err := mayWarm(account, mode, next.Warm, now); err != nil {
				return err
			}
		}
		if next.Mode == st.Mode && next.Warm == st.Warm {
			return errUnchanged
		}
		return nil
	})
}

// maySwitch returns an error if the account's quotas forbid the stream the mode. The caller holds
// the catalogue's lock.
func (l *limiter) maySwitch(st *catalogue.Stream, mode string, now moment) error {
	switch mode {
	case st.Mode:
		return nil
	case catalogue.ModeOnDemand:
		return l.mayBeOnDemand(st.World, now)
	default:
		return l.mayHoldShards(st.World, int64(len(st.OpenShards())))
	}
}
