package kinesis

import (
	"context"
	"slices"

	"github.com/runnel-stream/runnel/internal/wire"
)

// disableEnhancedMonitoring removes shard level metrics from a stream. Removing a metric that the
// stream does not have is no error.
func (s *Service) disableEnhancedMonitoring(
	ctx context.Context, world wire.World, in *monitoringInput,
) (any, error) {
	named := in.named()
	return s.streams.changeMonitoring(ctx, world, &in.target, func(current []string) []string {
		return slices.DeleteFunc(current, func(metric string) bool {
			return slices.Contains(named, metric)
		})
	})
}
