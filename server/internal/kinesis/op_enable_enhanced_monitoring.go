package kinesis

import (
	"context"

	"github.com/runnel-stream/runnel/internal/wire"
)

// enableEnhancedMonitoring adds shard level metrics to those that a stream has.
func (s *Service) enableEnhancedMonitoring(
	ctx context.Context, world wire.World, in *monitoringInput,
) (any, error) {
	return s.streams.changeMonitoring(ctx, world, &in.target, func(current []string) []string {
		return append(current, in.named()...)
	})
}
