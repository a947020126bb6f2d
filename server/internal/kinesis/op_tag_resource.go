package kinesis

import (
	"context"

	"github.com/runnel-stream/runnel/internal/wire"
)

type tagResourceInput struct {
	ResourceARN *string
	Tags        map[string]*string
}

func (*tagResourceInput) validate(*violations) {}

// tagResource adds tags to a stream or a consumer and replaces those of the same keys.
func (s *Service) tagResource(
	ctx context.Context, world wire.World, in *tagResourceInput,
) (any, error) {
	return nil, s.streams.changeLabels(ctx, world, *in.ResourceARN, func(l *labels) (err error) {
		l.tags, err = addTags(l.tags, in.Tags, l.owner)
		return err
	})
}
