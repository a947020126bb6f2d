package kinesis

import (
	"context"
	"slices"

	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/server/internal/catalogue"
)

type listConsumersInput struct {
	StreamARN               *string
	NextToken               *string
	MaxResults              *integer
	StreamCreationTimestamp *timestamp
}

// maxListConsumers is both the default and the maximum of one call (service model).
const maxListConsumers = 100

func (in *listConsumersInput) validate(v *violations) {
	if in.NextToken != nil && in.StreamCreationTimestamp != nil {
		v.fail(invalid("NextToken and StreamCreationTimestamp cannot be provided together."))
	}
}

type listConsumersOutput struct {
	Consumers []consumerDescription
	NextToken *string `json:",omitempty"`
}

// listConsumers lists a stream's consumers by name; that order is a guess.
func (s *Service) listConsumers(
	ctx context.Context, world wire.World, in *listConsumersInput,
) (any, error) {
	st, now, err := s.streams.viewTarget(ctx, world, &target{StreamARN: in.StreamARN})
	if err != nil {
		return nil, err
	}
	if !(&listShardsInput{StreamCreationTimestamp: in.StreamCreationTimestamp}).created(st) {
		return nil, streamNotFound(world, st.Name)
	}
	if status := st.Status(now); status == catalogue.StatusCreating {
		return nil, notActive(st, status)
	}
	var at page
	if in.NextToken != nil {
		at, err = s.sealer.Load().openPage(sealConsumersPage, world, *in.NextToken, now)
		if err != nil {
			return nil, err
		}
		if at.Stream != st.Name || at.Created != st.Created {
			return nil, invalid("NextToken is not valid.")
		}
	}
	limit := maxListConsumers
	if in.MaxResults != nil {
		limit = min(limit, int(*in.MaxResults))
	}
	consumers := slices.DeleteFunc(st.ConsumersAt(now), func(c *catalogue.Consumer) bool {
		return c.Name <= at.After
	})
	out := listConsumersOutput{Consumers: []consumerDescription{}}
	if len(consumers) > limit {
		consumers = consumers[:limit]
		out.NextToken, err = s.sealer.Load().sealPage(sealConsumersPage, world, page{
			Issued: now.Elapsed, After: consumers[limit-1].Name, Stream: st.Name,
			Created: st.Created,
		})
	}
	for _, c := range consumers {
		out.Consumers = append(out.Consumers, describeConsumerAt(st, c, now))
	}
	return &out, err
}
