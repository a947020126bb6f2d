package sqlsink_test

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/runnel-stream/runnel/sink/sqlsink"
	"github.com/runnel-stream/runnel/sink/sqlsink/pgxsink"
)

// pgxHandler inserts all effects by COPY.
func (d *database) pgxHandler(app string) pgxsink.Handler {
	return func(ctx context.Context, tx pgx.Tx, batch *sqlsink.Batch) error {
		columns := []string{"app", "stream", "shard", "position", "key", "data"}
		_, err := tx.CopyFrom(ctx, pgx.Identifier{"effects"}, columns,
			pgx.CopyFromSlice(len(batch.Records), func(i int) ([]any, error) {
				return effectOf(app, batch, i), nil
			}))
		return err
	}
}
