package kinesis

import (
	"context"
	"slices"

	"github.com/runnel-stream/runnel/internal/wire"
)

type listTagsInput struct {
	target
	ExclusiveStartTagKey *string
	Limit                *integer
}

func (in *listTagsInput) validate(v *violations) { in.target.validate(v) }

type listTagsOutput struct {
	Tags        []tagDescription
	HasMoreTags bool
}

// listTagsForStream lists a stream's tags by key, all of them unless there is a limit. The key to
// start after need not exist.
func (s *Service) listTagsForStream(
	ctx context.Context, world wire.World, in *listTagsInput,
) (any, error) {
	st, _, err := s.streams.viewTarget(ctx, world, &in.target)
	if err != nil {
		return nil, err
	}
	tags := describeTags(st.Tags)
	if in.ExclusiveStartTagKey != nil {
		tags = slices.DeleteFunc(tags, func(tag tagDescription) bool {
			return tag.Key <= *in.ExclusiveStartTagKey
		})
	}
	limit := maxTags
	if in.Limit != nil {
		limit = int(*in.Limit)
	}
	return &listTagsOutput{tags[:min(limit, len(tags))], len(tags) > limit}, nil
}
