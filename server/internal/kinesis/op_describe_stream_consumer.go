package kinesis

import (
	"context"

	"github.com/runnel-stream/runnel/internal/wire"
)

type describeConsumerInput struct{ consumerTarget }

type describeConsumerOutput struct{ ConsumerDescription consumerDescription }

func (s *Service) describeConsumer(
	ctx context.Context, world wire.World, in *describeConsumerInput,
) (any, error) {
	id, err := in.identify(world)
	if err != nil {
		return nil, err
	}
	st, now, err := s.streams.view(ctx, world, id.stream)
	if err != nil {
		return nil, err
	}
	c, err := in.find(id, st, now)
	if err != nil {
		return nil, err
	}
	out := describeConsumerOutput{describeConsumerAt(st, c, now)}
	out.ConsumerDescription.StreamARN = st.ARN()
	return &out, nil
}
