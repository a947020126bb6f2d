package kinesis

import (
	"context"
	"slices"

	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/server/internal/catalogue"
)

// allMetrics means every shard level metric in a request; answers name each of them (AWS CLI's
// example of "disable-enhanced-monitoring").
const allMetrics = "ALL"

// shardMetrics is the model's MetricsName without ALL, sorted.
var shardMetrics = []string{
	"IncomingBytes", "IncomingRecords", "IteratorAgeMilliseconds", "OutgoingBytes",
	"OutgoingRecords", "ReadProvisionedThroughputExceeded", "WriteProvisionedThroughputExceeded",
}

// monitoringInput is the input of enabling and disabling metrics.
type monitoringInput struct {
	target
	ShardLevelMetrics []string
}

func (in *monitoringInput) validate(v *violations) { in.target.validate(v) }

// named returns the metrics that the request names.
func (in *monitoringInput) named() []string {
	if slices.Contains(in.ShardLevelMetrics, allMetrics) {
		return shardMetrics
	}
	return in.ShardLevelMetrics
}

// monitoringOutput is the answer of both: the metrics before the call and after it.
type monitoringOutput struct {
	StreamName               string
	StreamARN                string
	CurrentShardLevelMetrics []string
	DesiredShardLevelMetrics []string
}

// changeMonitoring changes the metrics of an ACTIVE stream, which is then UPDATING for the stream
// delay. The list is stored and returned; it does not decide if something measures them.
func (s *streams) changeMonitoring(
	ctx context.Context, world wire.World, t *target, decide func(current []string) []string,
) (any, error) {
	var out monitoringOutput
	err := s.changeSettings(ctx, world, t, true, func(
		st *catalogue.Stream, next *catalogue.Settings, now moment,
	) error {
		if err := mustBeActive(st, now); err != nil {
			return err
		}
		desired := decide(slices.Clone(st.Monitoring))
		slices.Sort(desired)
		next.Monitoring = slices.Compact(desired)
		out = monitoringOutput{
			StreamName:               st.Name,
			StreamARN:                st.ARN(),
			CurrentShardLevelMetrics: append([]string{}, st.Monitoring...),
			DesiredShardLevelMetrics: append([]string{}, next.Monitoring...),
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &out, nil
}
