package kinesis

import (
	"context"
	"strings"

	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/server/internal/catalogue"
)

// labels are the tags and the resource policy of a stream or a consumer.
type labels struct {
	owner  string // for messages: "stream S under account A"
	tags   map[string]string
	policy string // JSON; "": none
}

func streamOwner(world wire.World, name string) string {
	return "stream " + name + " under account " + world.Account
}

func consumerOwner(st *catalogue.Stream, c *catalogue.Consumer) string {
	return "consumer " + c.Name + " of " + streamOwner(st.World, st.Name)
}

// isConsumerARN distinguishes the two kinds of resources that a ResourceARN can name.
func isConsumerARN(arn string) bool { return strings.Contains(arn, "/consumer/") }

// resourceTarget returns the stream that a ResourceARN names. The model's pattern is wider than
// that of a StreamARN: a text may match it and be no stream's ARN; it names nothing then.
func resourceTarget(arn string) (*target, error) {
	if world, name := splitARN(arn); world == (wire.World{}) || !catalogue.IsName(name) {
		return nil, fail(codeNotFound, "Resource %s not found.", arn)
	}
	return &target{StreamARN: &arn}, nil
}

// viewLabels returns the labels of a stream or a consumer, whatever its state.
func (s *streams) viewLabels(
	ctx context.Context, world wire.World, arn string,
) (labels, error) {
	if isConsumerARN(arn) {
		st, c, _, err := s.viewConsumer(ctx, world, arn)
		if err != nil {
			return labels{}, err
		}
		return labels{consumerOwner(st, c), c.Tags, c.Policy}, nil
	}
	t, err := resourceTarget(arn)
	if err != nil {
		return labels{}, err
	}
	st, _, err := s.viewTarget(ctx, world, t)
	if err != nil {
		return labels{}, err
	}
	return labels{streamOwner(st.World, st.Name), st.Tags, st.Policy}, nil
}

// changeLabels lets decide change the labels of a stream or a consumer, which must be ACTIVE (AWS,
// ResourceInUseException of "TagResource" and "PutResourcePolicy"). decide must replace the maps,
// not change them.
func (s *streams) changeLabels(
	ctx context.Context, world wire.World, arn string, decide func(*labels) error,
) error {
	if !isConsumerARN(arn) {
		t, err := resourceTarget(arn)
		if err != nil {
			return err
		}
		return s.changeStreamLabels(ctx, world, t, decide)
	}
	return s.changeConsumer(ctx, world, arn, func(
		st *catalogue.Stream, next *catalogue.Consumer, now moment,
	) error {
		if next.Status(now) != catalogue.StatusActive {
			return consumerNotActive(st, next)
		}
		l := labels{consumerOwner(st, next), next.Tags, next.Policy}
		if err := decide(&l); err != nil {
			return err
		}
		next.Tags, next.Policy = l.tags, l.policy
		return nil
	})
}

// changeStreamLabels is changeLabels for a stream. The stream stays ACTIVE.
func (s *streams) changeStreamLabels(
	ctx context.Context, world wire.World, t *target, decide func(*labels) error,
) error {
	return s.changeSettings(ctx, world, t, false, func(
		st *catalogue.Stream, next *catalogue.Settings, now moment,
	) error {
		if err := mustBeActive(st, now); err != nil {
			return err
		}
		l := labels{streamOwner(world, st.Name), next.Tags, next.Policy}
		if err := decide(&l); err != nil {
			return err
		}
		next.Tags, next.Policy = l.tags, l.policy
		return nil
	})
}
