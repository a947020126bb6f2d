package kinesis

import (
	"context"
	"encoding/json"

	"github.com/runnel-stream/runnel/internal/wire"
)

type putResourcePolicyInput struct {
	ResourceARN *string
	Policy      *string
}

// maxPolicy bounds a policy, in bytes. AWS documents 20 KiB for DynamoDB's and nothing for Kinesis,
// so this is a guess.
const maxPolicy = 20 << 10

// validate checks the form of an IAM document: a JSON object with a Statement. The texts are
// guesses.
func (in *putResourcePolicyInput) validate(v *violations) {
	if in.Policy == nil {
		return
	}
	if len(*in.Policy) > maxPolicy {
		v.fail(fail(codeLimit, "The resource policy has %d bytes, at most %d are allowed.",
			len(*in.Policy), maxPolicy))
		return
	}
	var document map[string]json.RawMessage
	if err := json.Unmarshal([]byte(*in.Policy), &document); err != nil {
		v.fail(invalid("The resource policy is not a JSON object: %v", err))
		return
	}
	if document["Statement"] == nil {
		v.fail(invalid("The resource policy has no Statement."))
	}
}

// putResourcePolicy stores a policy for a stream or a consumer, in place of an earlier one. The
// policy is returned on request, but allows and refuses nothing: every caller with a valid key may
// do anything.
func (s *Service) putResourcePolicy(
	ctx context.Context, world wire.World, in *putResourcePolicyInput,
) (any, error) {
	return nil, s.streams.changeLabels(ctx, world, *in.ResourceARN, func(l *labels) error {
		l.policy = *in.Policy
		return nil
	})
}
