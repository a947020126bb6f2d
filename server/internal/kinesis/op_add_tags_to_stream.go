package kinesis

import (
	"context"

	"github.com/runnel-stream/runnel/internal/wire"
)

type addTagsInput struct {
	target
	Tags map[string]*string
}

func (in *addTagsInput) validate(v *violations) { in.target.validate(v) }

// addTagsToStream adds tags to an ACTIVE stream and replaces those of the same keys.
func (s *Service) addTagsToStream(
	ctx context.Context, world wire.World, in *addTagsInput,
) (any, error) {
	return nil, s.streams.changeStreamLabels(ctx, world, &in.target, func(l *labels) (err error) {
		l.tags, err = addTags(l.tags, in.Tags, l.owner)
		return err
	})
}
