package outbox_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"
	"github.com/jackc/pgx/v5"
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

const backlog = `insert into outbox (partition_key, record_data)
select 'key' || (n::bigint * 7919 % 10000), jsonb_build_object('n', n, 'text', repeat('x', 270))
from generate_series(1, $1::int) n`

func benchBacklog(b *testing.B, rows int, held bool) {
	b.StopTimer()
	p := pgtest.New(b, "shared_buffers = '512MB'", "max_wal_size = '4GB'")
	pool, err := pgxpool.New(b.Context(), p.URL)
	must(b, err)
	defer pool.Close()
	db := outbox.Postgres(pool)
	must(b, outbox.Migrate(b.Context(), db, outbox.Table{}))
	_, err = pool.Exec(b.Context(), backlog, rows)
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

// BenchmarkLatency commits 100 rows a second for 20 s, and reports the time from a commit to its
// row's acknowledgement by the stream.
func BenchmarkLatency(b *testing.B) {
	for range b.N {
		benchLatency(b)
	}
}

func benchLatency(b *testing.B) {
	p := pgtest.New(b)
	pool, err := pgxpool.New(b.Context(), p.URL)
	must(b, err)
	defer pool.Close()
	db := outbox.Postgres(pool)
	must(b, outbox.Migrate(b.Context(), db, outbox.Table{}))
	server := runneltest.NewServer(b, runneltest.WithStream("orders", 4))
	client := &noted{Client: server.Kinesis(), at: map[string]time.Time{}}
	r, err := outbox.New(outbox.Config{
		DB: db, Logger: slog.New(slog.DiscardHandler),
		Producer: producer.Config{Stream: "orders", Kinesis: client},
	})
	must(b, err)
	ctx, cancel := context.WithCancel(b.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	const rows = 2000
	committed := make([]time.Time, rows)
	start := time.Now()
	for n := range rows {
		time.Sleep(time.Until(start.Add(time.Duration(n) * 10 * time.Millisecond)))
		_, err := pool.Exec(b.Context(), "insert into outbox (partition_key, record_data) "+
			"values ($1, '{}')", fmt.Sprint("key", n))
		must(b, err)
		committed[n] = time.Now()
	}
	for r.Stats().Sent < rows {
		time.Sleep(time.Millisecond)
	}
	cancel()
	must(b, <-ended)
	took := make([]float64, rows)
	for n := range rows {
		took[n] = client.at[fmt.Sprint("key", n)].Sub(committed[n]).Seconds() * 1000
	}
	slices.Sort(took)
	b.ReportMetric(took[rows/2], "p50-ms")
	b.ReportMetric(took[rows*99/100], "p99-ms")
}

// noted is a client that notes when the records of a key were acknowledged.
type noted struct {
	*kinesis.Client
	mu sync.Mutex
	at map[string]time.Time
}

func (n *noted) PutRecords(
	ctx context.Context, in *kinesis.PutRecordsInput, options ...func(*kinesis.Options),
) (*kinesis.PutRecordsOutput, error) {
	out, err := n.Client.PutRecords(ctx, in, options...)
	now := time.Now()
	n.mu.Lock()
	defer n.mu.Unlock()
	for i := range in.Records {
		n.at[*in.Records[i].PartitionKey] = now
	}
	return out, err
}

// BenchmarkColdKeys relays 1,000 rows of cold keys behind 500,000 of a hot one, to a stream of four
// shards with AWS's limits, and reports when the cold ones were out.
func BenchmarkColdKeys(b *testing.B) {
	for range b.N {
		benchColdKeys(b)
	}
}

func benchColdKeys(b *testing.B) {
	p := pgtest.New(b, "shared_buffers = '512MB'")
	pool, err := pgxpool.New(b.Context(), p.URL)
	must(b, err)
	defer pool.Close()
	db := outbox.Postgres(pool)
	must(b, outbox.Migrate(b.Context(), db, outbox.Table{}))
	_, err = pool.Exec(b.Context(), `insert into outbox (partition_key, record_data)
		select case when n <= 500000 then 'hot' else 'cold' || n end,
			jsonb_build_object('n', n, 'text', repeat('x', 270))
		from generate_series(1, 501000) n`)
	must(b, err)
	server := runneltest.NewServer(b, runneltest.WithStream("orders", 4),
		runneltest.WithLimits("aws"))
	r, err := outbox.New(outbox.Config{
		DB: db, Logger: slog.New(slog.DiscardHandler),
		Producer: producer.Config{Stream: "orders", Kinesis: server.Kinesis()},
	})
	must(b, err)
	ctx, cancel := context.WithCancel(b.Context())
	ended := make(chan error, 1)
	began := time.Now()
	go func() { ended <- r.Run(ctx) }()
	for left := 1; left > 0; time.Sleep(20 * time.Millisecond) {
		must(b, pool.QueryRow(b.Context(), "select count(*) from outbox where "+
			"partition_key <> 'hot'").Scan(&left))
	}
	b.ReportMetric(time.Since(began).Seconds(), "cold-s")
	b.ReportMetric(float64(r.Stats().Sent-1000), "hot-rows")
	cancel()
	must(b, <-ended)
}

// BenchmarkHeads relays the backlog of BenchmarkBacklog by the article's query for 20 s.
func BenchmarkHeads(b *testing.B) {
	rows, _ := strconv.Atoi(os.Getenv("RUNNEL_BENCH_ROWS"))
	if rows == 0 {
		rows = 100_000
	}
	p := pgtest.New(b, "shared_buffers = '512MB'")
	pool, err := pgxpool.New(b.Context(), p.URL)
	must(b, err)
	defer pool.Close()
	must(b, outbox.Migrate(b.Context(), outbox.Postgres(pool), outbox.Table{}))
	_, err = pool.Exec(b.Context(), backlog, rows)
	must(b, err)
	server := runneltest.NewServer(b, runneltest.WithStream("orders", 4))
	for range b.N {
		sent := 0
		began := time.Now()
		for time.Since(began) < 20*time.Second {
			n := putHeadsOnce(b, pool, server.Kinesis())
			if sent += n; n == 0 {
				break
			}
		}
		b.ReportMetric(float64(sent)/time.Since(began).Seconds(), "rows/s")
	}
}

// putHeadsOnce puts the first rows of up to 500 keys, and deletes them.
func putHeadsOnce(b *testing.B, pool *pgxpool.Pool, client *kinesis.Client) int {
	found, err := pool.Query(b.Context(), `select id, partition_key, record_data::text
		from outbox where id in (select min(id) from outbox group by partition_key)
		order by id limit 500`)
	must(b, err)
	var ids []int64
	in := &kinesis.PutRecordsInput{StreamName: new("orders")}
	var id int64
	var key, data string
	_, err = pgx.ForEachRow(found, []any{&id, &key, &data}, func() error {
		ids = append(ids, id)
		in.Records = append(in.Records, types.PutRecordsRequestEntry{
			PartitionKey: new(key), Data: []byte(data),
		})
		return nil
	})
	must(b, err)
	if len(ids) == 0 {
		return 0
	}
	_, err = client.PutRecords(b.Context(), in)
	must(b, err)
	_, err = pool.Exec(b.Context(), "delete from outbox where id = any($1)", ids)
	must(b, err)
	return len(ids)
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}
