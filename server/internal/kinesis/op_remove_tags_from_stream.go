package kinesis

import (
	"context"

	"github.com/runnel-stream/runnel/internal/wire"
)

type removeTagsInput struct {
	target
	TagKeys []string
}

func (in *removeTagsInput) validate(v *violations) { in.target.validate(v) }

// removeTagsFromStream removes tags from an ACTIVE stream. Keys that it does not have are no error.
func (s *Service) removeTagsFromStream(
	ctx context.Context, world wire.World, in *removeTagsInput,
) (any, error) {
	return nil, s.streams.changeStreamLabels(ctx, world, &in.target, func(l *labels) (err error) {
		l.tags, err = removeTags(l.tags, in.TagKeys, l.owner)
		return err
	})
}
