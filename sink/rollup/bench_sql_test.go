package rollup_test

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/consumer"
	"github.com/runnel-stream/runnel/internal/pgtest"
	"github.com/runnel-stream/runnel/producer"
	"github.com/runnel-stream/runnel/runneltest"
	"github.com/runnel-stream/runnel/sink"
	"github.com/runnel-stream/runnel/sink/rollup"
)

func postgresOf(b *testing.B) (*database, string) {
	b.Helper()
	at := pgtest.New(b).URL
	db, err := sql.Open("pgx", at)
	must(b, err)
	b.Cleanup(func() { _ = db.Close() })
	return &database{rollup.Postgres, db}, at
}

// BenchmarkOperations has the number of records for each row that is written, when a batch has that
// many records: real events by type and hour.
func BenchmarkOperations(b *testing.B) {
	events := rollup.ReadEvents(b)
	for _, size := range []int{1, 10, 100, 1000, 10_000} {
		b.Run(fmt.Sprint(size, " behind"), func(b *testing.B) {
			d, _ := postgresOf(b)
			of := rollup.Definition{
				Keys: []rollup.Field{{Pointer: "/type"}}, Bucket: time.Hour, Time: "/created_at",
				Columns: []rollup.Column{{Op: rollup.Count}},
			}
			cfg := d.config("events", of)
			rows, records := 0, 0
			cfg.OnCommit = func(c rollup.Commit) { rows, records = rows+c.Rows, records+c.Records }
			r, err := rollup.New(cfg)
			must(b, err)
			must(b, r.Prepare(b.Context()))
			w, err := r.Open(b.Context(), sink.Shard{
				Stream: "edits", Created: time.UnixMilli(1), ID: "shardId-000000000000",
			})
			must(b, err)
			for b.Loop() {
				from := records % (len(events) - size)
				batch := slices.Clone(events[from : from+size])
				for i := range batch {
					batch[i].Position = runnel.Position{Sequence: runnel.SequenceNumber(
						fmt.Sprint(1_000_000 + records + i))}
				}
				_, err := w.Write(b.Context(), sink.Batch{
					Records: batch, Through: batch[size-1].Position,
				})
				must(b, err)
			}
			b.ReportMetric(float64(records)/float64(rows), "records/row")
			b.ReportMetric(float64(records)/b.Elapsed().Seconds(), "records/s")
		})
	}
}

// BenchmarkRecordsOneByOne writes each record as an update of its row: in a transaction of its own
// with the position, and in one transaction of a batch of 1,000.
func BenchmarkRecordsOneByOne(b *testing.B) {
	d, _ := postgresOf(b)
	_, err := d.db.ExecContext(b.Context(), "create table one (k text primary key, count bigint)")
	must(b, err)
	const upsert = "insert into one values ($1, 1) on conflict (k) do update set count = one.count + 1"
	for _, size := range []int{1, 1000} {
		b.Run(fmt.Sprint(size, " in a transaction"), func(b *testing.B) {
			n := 0
			for b.Loop() {
				tx, err := d.db.BeginTx(b.Context(), nil)
				must(b, err)
				for range size {
					_, err := tx.ExecContext(b.Context(), upsert, fmt.Sprint("k", n%1000))
					must(b, err)
					n++
				}
				must(b, tx.Commit())
			}
			b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "records/s")
		})
	}
}

// BenchmarkIdleLatency is the time from the put of a record to its row, on an idle stream.
func BenchmarkIdleLatency(b *testing.B) {
	d, _ := postgresOf(b)
	server := runneltest.NewServer(b, runneltest.WithStream("edits", 4))
	cfg := d.config("edits", count())
	committed := make(chan time.Time, 1)
	cfg.OnCommit = func(rollup.Commit) { committed <- time.Now() }
	r, err := rollup.New(cfg)
	must(b, err)
	must(b, r.Prepare(b.Context()))
	w, err := consumer.New(consumer.Config{
		Stream: "edits", App: cfg.App, Sink: r, Kinesis: server.Kinesis(),
		DynamoDB: server.DynamoDB(), Logger: slog.New(slog.DiscardHandler),
	})
	must(b, err)
	ctx, stop := context.WithCancel(b.Context())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	var took []time.Duration
	put := func() time.Duration {
		start := time.Now()
		_, err := server.Kinesis().PutRecord(b.Context(), &kinesis.PutRecordInput{
			StreamName: aws.String("edits"), PartitionKey: aws.String(fmt.Sprint(len(took))),
			Data: []byte(`{"k": "a"}`),
		})
		must(b, err)
		return (<-committed).Sub(start)
	}
	put()
	for b.Loop() {
		time.Sleep(time.Duration(rand.IntN(400)) * time.Millisecond) // the stream is idle
		took = append(took, put())
	}
	stop()
	must(b, <-done)
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
}

// BenchmarkWorker runs runnel rollup as a process on a stream that is behind: records of 100 bytes
// in aggregates, into 1,000 rows of PostgreSQL. It reports the records for each second of the
// process's CPU time.
func BenchmarkWorker(b *testing.B) {
	const records = 2_000_000
	bin := filepath.Join(b.TempDir(), "runnel")
	build := exec.CommandContext(b.Context(), "go", "build", "-o", bin, "../../cmd/runnel")
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	server := runneltest.NewServer(b, runneltest.WithStream("edits", 4))
	p, err := producer.New(b.Context(), producer.Config{Stream: "edits", Kinesis: server.Kinesis()})
	must(b, err)
	var failed atomic.Int64
	for n := range records {
		data := fmt.Appendf(nil, `{"key":"key-%03d","value":%d,"text":"%055d"}`, n%1000, n, n)
		err := p.PutFunc(b.Context(), runnel.Record{PartitionKey: fmt.Sprint(n % 10_000), Data: data},
			func(r producer.Result) {
				if r.Err != nil {
					failed.Add(1)
				}
			})
		must(b, err)
	}
	must(b, p.Close(b.Context()))
	if failed.Load() > 0 {
		b.Fatalf("%d records were not put", failed.Load())
	}
	d, at := postgresOf(b)
	n, cpu := 0, time.Duration(0)
	for b.Loop() {
		n++
		table := fmt.Sprint("by_key_", n)
		run := exec.CommandContext(b.Context(), bin, "rollup", "--endpoint", server.Endpoint(),
			"--stream", "edits", "--db", at, "--table", table, "--key", "/key", "--count",
			"--sum", "/value:int", "--max", "/value:int", "--once")
		run.Stderr = os.Stderr
		must(b, run.Run())
		cpu += run.ProcessState.UserTime() + run.ProcessState.SystemTime()
		got := d.table(b, "select count(*), sum(count) from "+table)
		if want := fmt.Sprintf("1000|%d", records); len(got) != 1 || got[0] != want {
			b.Fatalf("the rows and records are %q, want %s", got, want)
		}
	}
	b.ReportMetric(float64(n*records)/cpu.Seconds(), "records/CPU-s")
	b.ReportMetric(float64(n*records)/b.Elapsed().Seconds(), "records/s")
}
