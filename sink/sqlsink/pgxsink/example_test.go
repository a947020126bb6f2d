package pgxsink_test

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/runnel-stream/runnel/sink/sqlsink"
	"github.com/runnel-stream/runnel/sink/sqlsink/pgxsink"
)

// A handler copies each batch into a table. The sink is the Sink of a consumer.Config.
func ExampleNew() {
	_ = func(ctx context.Context, pool *pgxpool.Pool) (*sqlsink.Sink, error) {
		handler := func(ctx context.Context, tx pgx.Tx, batch *sqlsink.Batch) error {
			_, err := tx.CopyFrom(ctx, pgx.Identifier{"events"}, []string{"key", "data"},
				pgx.CopyFromSlice(len(batch.Records), func(i int) ([]any, error) {
					return []any{batch.Records[i].PartitionKey, batch.Records[i].Data}, nil
				}))
			return err
		}
		s, err := pgxsink.New(pool, handler, sqlsink.Config{App: "orders"})
		if err != nil {
			return nil, err
		}
		return s, s.Migrate(ctx)
	}
}
