package outbox_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/runnel-stream/runnel/internal/pgtest"
	"github.com/runnel-stream/runnel/outbox"
	"github.com/runnel-stream/runnel/producer"
	"github.com/runnel-stream/runnel/runneltest"
)

// BenchmarkBacklog relays a backlog of rows of 300 bytes with 10,000 keys, from PostgreSQL to a
// server beside it. RUNNEL_BENCH_ROWS=1000000 is the size of the backlog.
func BenchmarkBacklog(b *testing.B) {
	rows, _ := strconv.Atoi(os.Getenv("RUNNEL_BENCH_ROWS"))
	if rows == 0 {
		rows = 100_000
	}
	for _, held := range []bool{false, true} {
		b.Run(fmt.Sprintf("rows=%d,snapshot=%v", rows, held), func(b *testing.B) {
			for range b.N {
				benchBacklog(b, rows, held)
			}
		})
	}
}

func benchBacklog(b *testing.B, rows int, held bool) {
	b.StopTimer()
	p := pgtest.New(b, "shared_buffers = '512MB'", "max_wal_size = '4GB'")
	pool, err := pgxpool.New(b.Context(), p.URL)
	must(b, err)
	defer pool.Close()
	db := outbox.Postgres(pool)
	must(b, outbox.Migrate(b.Context(), db, outbox.Table{}))
	_, err = pool.Exec(b.Context(), `insert into outbox (partition_key, record_data)
		select 'key' || (n::bigint * 7919 % 10000), jsonb_build_object('n', n, 'text', repeat('x', 270))
		from generate_series(1, $1::int) n`, rows)
	must(b, err)
	_, err = pool.Exec(b.Context(), "vacuum analyze outbox")
	must(b, err)
	_, err = pool.Exec(b.Context(), "checkpoint")
	must(b, err)
	if held {
		tx, err := pool.Begin(b.Context())
		must(b, err)
		_, err = tx.Exec(b.Context(), "set transaction isolation level repeatable read")
		must(b, err)
		_, err = tx.Exec(b.Context(), "select count(*) from outbox")
		must(b, err)
		defer func() { _ = tx.Rollback(context.Background()) }()
	}
	server := runneltest.NewServer(b, runneltest.WithStream("orders", 4))
	r, err := outbox.New(outbox.Config{
		DB: db, Once: true, Logger: slog.New(slog.DiscardHandler),
		Producer: producer.Config{Stream: "orders", Kinesis: server.Kinesis()},
	})
	must(b, err)
	b.StartTimer()
	began := time.Now()
	must(b, r.Run(b.Context()))
	b.StopTimer()
	if got := r.Stats().Sent; got != int64(rows) {
		b.Fatalf("%d rows were sent", got)
	}
	b.ReportMetric(float64(rows)/time.Since(began).Seconds(), "rows/s")
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}
