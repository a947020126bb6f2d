package kinesis

import (
	"context"

	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/server/internal/catalogue"
	"github.com/runnel-stream/runnel/server/internal/wal"
)

type registerConsumerInput struct {
	StreamARN    *string
	ConsumerName *string
	Tags         map[string]*string
}

func (in *registerConsumerInput) validate(*violations) {}

// The most consumers of a stream, and of an on-demand one in an account with a commitment
// ("On-demand Advantage"; AWS, "RegisterStreamConsumer").
const (
	maxConsumers         = 20
	maxConsumersOnDemand = 50
)

// consumerDescription is the model's Consumer, and with a StreamARN its ConsumerDescription.
type consumerDescription struct {
	ConsumerName              string
	ConsumerARN               string
	ConsumerStatus            string
	ConsumerCreationTimestamp timestamp
	StreamARN                 string `json:",omitempty"`
}

func describeConsumerAt(
	st *catalogue.Stream, c *catalogue.Consumer, now moment,
) consumerDescription {
	return consumerDescription{
		ConsumerName:              c.Name,
		ConsumerARN:               c.ARN(st),
		ConsumerStatus:            st.ConsumerStatus(c, now),
		ConsumerCreationTimestamp: timestamp(c.Created),
	}
}

type registerConsumerOutput struct{ Consumer consumerDescription }

// registerConsumer registers a consumer. It is CREATING for the stream delay, as the answer always
// says, then ACTIVE. The stream may be UPDATING. The refusal of CREATING and DELETING streams is a
// guess, and so are the texts.
func (s *Service) registerConsumer(
	ctx context.Context, world wire.World, in *registerConsumerInput,
) (any, error) {
	var out registerConsumerOutput
	err := s.streams.changeStream(ctx, world, &target{StreamARN: in.StreamARN}, func(
		tx *wal.Tx, st *catalogue.Stream, now moment,
	) error {
		if status := st.Status(now); !st.Serves(now) {
			return notActive(st, status)
		}
		name := *in.ConsumerName
		if st.Consumer(name, now) != nil {
			return fail(codeInUse, "Consumer %s under stream %s and account %s already exists.",
				name, st.Name, world.Account)
		}
		limit := maxConsumers
		account := s.streams.catalogue.Account(world)
		if st.Mode == catalogue.ModeOnDemand &&
			account.Commitment.Status(now.Stamp) != catalogue.CommitmentDisabled {
			limit = maxConsumersOnDemand
		}
		if len(st.ConsumersAt(now)) >= limit {
			return fail(codeLimit, "Stream %s under account %s has %d registered consumers, "+
				"which is the limit.", st.Name, world.Account, limit)
		}
		c := &catalogue.Consumer{
			Name: name, Created: st.ConsumerCreated(name, now),
			Phase: catalogue.StatusCreating, Until: s.streams.until(now),
		}
		if in.Tags != nil {
			var err error
			if c.Tags, err = addTags(nil, in.Tags, consumerOwner(st, c)); err != nil {
				return err
			}
		}
		out.Consumer = describeConsumerAt(st, c, now)
		out.Consumer.ConsumerStatus = catalogue.StatusCreating
		return s.streams.catalogue.PutConsumer(tx, st, c, now)
	})
	if err != nil {
		return nil, err
	}
	return &out, nil
}
