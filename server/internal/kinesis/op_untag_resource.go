package kinesis

import (
	"context"

	"github.com/runnel-stream/runnel/internal/wire"
)

type untagResourceInput struct {
	ResourceARN *string
	TagKeys     []string
}

func (*untagResourceInput) validate(*violations) {}

// untagResource removes tags from a stream or a consumer. Keys that it does not have are no error.
func (s *Service) untagResource(
	ctx context.Context, world wire.World, in *untagResourceInput,
) (any, error) {
	return nil, s.streams.changeLabels(ctx, world, *in.ResourceARN, func(l *labels) (err error) {
		l.tags, err = removeTags(l.tags, in.TagKeys, l.owner)
		return err
	})
}
