package kinesis

import (
	"cmp"
	"context"

	"github.com/runnel-stream/runnel/internal/wire"
)

type resourcePolicyInput struct{ ResourceARN *string }

func (*resourcePolicyInput) validate(*violations) {}

type getResourcePolicyOutput struct{ Policy string }

// noPolicy is the policy of a resource without one (LocalStack's snapshot of AWS).
const noPolicy = "{}"

// getResourcePolicy returns the policy of a stream or a consumer as it was put.
func (s *Service) getResourcePolicy(
	ctx context.Context, world wire.World, in *resourcePolicyInput,
) (any, error) {
	l, err := s.streams.viewLabels(ctx, world, *in.ResourceARN)
	if err != nil {
		return nil, err
	}
	return &getResourcePolicyOutput{cmp.Or(l.policy, noPolicy)}, nil
}
