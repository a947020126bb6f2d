package kinesis

import (
	"context"

	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/server/internal/catalogue"
	"github.com/runnel-stream/runnel/server/internal/wal"
)

type deregisterConsumerInput struct{ consumerTarget }

// deregisterConsumer begins the consumer's deletion: it is DELETING for the stream delay, then
// gone. Its subscriptions end at once. For a consumer that is DELETING already it does nothing, and
// returns no error (a guess).
func (s *Service) deregisterConsumer(
	ctx context.Context, world wire.World, in *deregisterConsumerInput,
) (any, error) {
	id, err := in.identify(world)
	if err != nil {
		return nil, err
	}
	by := s.streams.log.SequenceFreeing // a stream with consumers is not deleted without force
	return nil, s.streams.changeBy(ctx, by, changeSize, func(tx *wal.Tx, now moment) error {
		st := s.streams.catalogue.Find(world, id.stream, now)
		c, err := in.find(id, st, now)
		if err != nil || st.ConsumerStatus(c, now) == catalogue.StatusDeleting {
			return err
		}
		next := c.Clone()
		next.Phase, next.Until = catalogue.StatusDeleting, s.streams.until(now)
		return s.streams.catalogue.PutConsumer(tx, st, next, now)
	})
}
