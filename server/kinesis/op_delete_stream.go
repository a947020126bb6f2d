package kinesis

import (
	"context"

	"github.com/runnel-stream/runnel/internal/awswire"
	"github.com/runnel-stream/runnel/internal/wal"
)

type deleteStreamInput struct {
	target
	// EnforceConsumerDeletion allows it although consumers are registered; there are none.
	EnforceConsumerDeletion *bool
}

// deleteStream begins the deletion: the stream is DELETING and can be read for the stream
// delay, then it is gone with its shards and records, whose files the next sweep removes.
func (s *Service) deleteStream(
	ctx context.Context, world awswire.World, in *deleteStreamInput,
) (any, error) {
	return nil, s.changeStream(ctx, world, &in.target, func(
		tx *wal.Tx, st *stream, now int64,
	) error {
		if status := st.status(now); status != statusActive {
			return notActive(st, status)
		}
		return s.catalogue.commit(tx, &change{
			Op: changeDelete, At: now, World: &world, Name: st.Name, Until: s.until(now),
		})
	})
}
