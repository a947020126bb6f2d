package kinesis

import (
	"context"

	"github.com/runnel-stream/runnel/internal/wire"
)

type resourceTagsInput struct{ ResourceARN *string }

func (*resourceTagsInput) validate(*violations) {}

type listTagsForResourceOutput struct{ Tags []tagDescription }

// listTagsForResource lists all tags of a stream or a consumer, by key.
func (s *Service) listTagsForResource(
	ctx context.Context, world wire.World, in *resourceTagsInput,
) (any, error) {
	l, err := s.streams.viewLabels(ctx, world, *in.ResourceARN)
	if err != nil {
		return nil, err
	}
	return &listTagsForResourceOutput{describeTags(l.tags)}, nil
}
