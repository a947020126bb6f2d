package kinesis

import (
	"context"

	"github.com/runnel-stream/runnel/internal/wire"
)

// noMembers is the input of the operations that take nothing.
type noMembers struct{}

func (*noMembers) validate(*violations) {}

// describeAccountSettings returns the settings of the caller's account and region.
func (s *Service) describeAccountSettings(
	ctx context.Context, world wire.World, _ *noMembers,
) (any, error) {
	a, now, err := s.streams.viewAccount(ctx, world)
	if err != nil {
		return nil, err
	}
	return describeAccount(a, now), nil
}
