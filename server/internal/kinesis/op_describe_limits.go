package kinesis

import (
	"context"

	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/server/internal/catalogue"
	"github.com/runnel-stream/runnel/server/internal/limit"
)

type describeLimitsOutput struct {
	ShardLimit               int
	OpenShardCount           int
	OnDemandStreamCount      int
	OnDemandStreamCountLimit int
}

// maxOnDemandStreams is the default quota of an account in a region (AWS, "Quotas and
// limits").
const maxOnDemandStreams = 50

// shardLimit returns the default shard quota of an account in a region (AWS, "Quotas and
// limits": 20,000 in three regions, "1,000 or 6,000" in the others).
func shardLimit(region string) int {
	switch region {
	case "us-east-1", "us-west-2", "eu-west-1":
		return 20_000
	default:
		return 1000
	}
}

// describeLimits returns the quotas of the caller's account and region, and how much of them is
// used. The quotas are those set for this server, else AWS's defaults. The open shards of on-demand
// streams do not count, since the quota is not for them (a guess).
func (s *Service) describeLimits(
	ctx context.Context, world wire.World, _ *noMembers,
) (any, error) {
	streams, _, err := s.streams.viewAll(ctx, world)
	if err != nil {
		return nil, err
	}
	out := describeLimitsOutput{
		ShardLimit:               shardLimit(world.Region),
		OnDemandStreamCountLimit: maxOnDemandStreams,
	}
	if most, limited := s.limits.quota(limit.Shards); limited {
		out.ShardLimit = int(most)
	}
	if most, limited := s.limits.quota(limit.OnDemandStreams); limited {
		out.OnDemandStreamCountLimit = int(most)
	}
	for _, st := range streams {
		if st.Mode == catalogue.ModeOnDemand {
			out.OnDemandStreamCount++
		} else {
			out.OpenShardCount += len(st.OpenShards())
		}
	}
	return &out, nil
}
