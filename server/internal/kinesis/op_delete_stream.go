package kinesis

import (
	"context"

	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/server/internal/catalogue"
	"github.com/runnel-stream/runnel/server/internal/wal"
)

type deleteStreamInput struct {
	target
	// EnforceConsumerDeletion deletes registered consumers too, instead of refusing the call.
	EnforceConsumerDeletion *bool
}

// deleteStream begins the deletion. For the stream delay the stream is DELETING and can be read.
// Then it is gone with its shards and records, and a sweep removes their files.
func (s *Service) deleteStream(
	ctx context.Context, world wire.World, in *deleteStreamInput,
) (any, error) {
	defer s.sweeper.look()
	by := s.streams.log.SequenceFreeing
	return nil, s.streams.changeStreamBy(ctx, by, world, &in.target, func(
		tx *wal.Tx, st *catalogue.Stream, now moment,
	) error {
		// A stream that is CREATING can be deleted, too (kinesalite, test/deleteStream.js).
		status := st.Status(now)
		if status != catalogue.StatusActive && status != catalogue.StatusCreating {
			return notActive(st, status)
		}
		forced := in.EnforceConsumerDeletion != nil && *in.EnforceConsumerDeletion
		if !forced && len(st.ConsumersAt(now)) > 0 {
			return consumersLeft(st)
		}
		return s.streams.catalogue.Commit(tx, &catalogue.Change{
			Op: catalogue.ChangeDelete, At: now.Stamp, World: &world, Name: st.Name,
			Until: s.streams.until(now),
		})
	})
}

// consumersLeft is AWS's text (terraform-provider-aws#8420).
func consumersLeft(st *catalogue.Stream) *wire.Error {
	return fail(codeInUse, "DeleteStream can't delete %s:%s because there are consumers "+
		"associated with this data stream. To delete %s anyway, set the EnforceConsumerDeletion "+
		"parameter to true to force the deletion of all the consumers that are associated with it.",
		st.World.Account, st.Name, st.Name)
}
