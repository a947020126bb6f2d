package sqlsink_test

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/sink"
	"github.com/runnel-stream/runnel/sink/sqlsink"
)

// A batch of one record comes twice, to two writers of one shard. The balance counts it once. A
// consumer.Worker does all of this with Config.Sink.
func Example() {
	ctx := context.Background()
	db, _ := sql.Open("sqlite", "file:example?mode=memory&cache=shared")
	defer db.Close()
	_, _ = db.ExecContext(ctx, "create table balance (account text primary key, amount integer)")
	s, _ := sqlsink.New(sqlsink.Config{
		DB: db, Dialect: sqlsink.SQLite(), App: "balances",
		Handler: func(ctx context.Context, tx *sql.Tx, batch *sqlsink.Batch) error {
			for _, r := range batch.Records {
				_, err := tx.ExecContext(ctx, "insert into balance values (?, ?) "+
					"on conflict do update set amount = amount + excluded.amount",
					r.PartitionKey, string(r.Data))
				if err != nil {
					return fmt.Errorf("account %s: %w", r.PartitionKey, err)
				}
			}
			return nil
		},
	})
	_ = s.Migrate(ctx)

	shard := sink.Shard{
		Stream: "payments", Created: time.UnixMilli(1_700_000_000_000), ID: "shardId-000000000000",
	}
	first, _ := s.Open(ctx, shard)
	second, _ := s.Open(ctx, shard)
	batch := sink.Batch{Through: runnel.Position{Sequence: "1001"}, Records: []runnel.Record{{
		PartitionKey: "anna", Data: []byte("30"), ShardID: shard.ID,
		Position: runnel.Position{Sequence: "1001"},
	}}}
	for _, w := range []sink.Writer{first, second} {
		_, err := w.Write(ctx, batch)
		fmt.Println(w.Committed().End, err)
	}
	var amount int
	_ = db.QueryRowContext(ctx, "select amount from balance where account = 'anna'").Scan(&amount)
	fmt.Println("anna has", amount)
	// Output:
	// 1001 <nil>
	// 1001 another worker committed first: the shard goes on after 1001
	// anna has 30
}
