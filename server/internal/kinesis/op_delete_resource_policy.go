package kinesis

import (
	"context"

	"github.com/runnel-stream/runnel/internal/wire"
)

// deleteResourcePolicy deletes the policy of a stream or a consumer. A missing policy is an error
// (moto's and LocalStack's text).
func (s *Service) deleteResourcePolicy(
	ctx context.Context, world wire.World, in *resourcePolicyInput,
) (any, error) {
	return nil, s.streams.changeLabels(ctx, world, *in.ResourceARN, func(l *labels) error {
		if l.policy == "" {
			return fail(codeNotFound, "No resource policy found for resource ARN %s.",
				*in.ResourceARN)
		}
		l.policy = ""
		return nil
	})
}
