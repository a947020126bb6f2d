package kinesis

import (
	"context"

	"github.com/runnel-stream/runnel/internal/awswire"
)

// enableEnhancedMonitoring adds shard level metrics to those that a stream has.
func (s *Service) enableEnhancedMonitoring(
	ctx context.Context, world awswire.World, in *monitoringInput,
) (any, error) {
	return s.changeMonitoring(ctx, world, &in.target, func(current []string) []string {
		return append(current, in.named()...)
	})
}
