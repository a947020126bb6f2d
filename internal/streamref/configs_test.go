package streamref_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/smithy-go/middleware"
	_ "modernc.org/sqlite" // the driver

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/consumer"
	"github.com/runnel-stream/runnel/internal/compare"
	"github.com/runnel-stream/runnel/internal/follow"
	"github.com/runnel-stream/runnel/keyspace/plan"
	"github.com/runnel-stream/runnel/keytable"
	"github.com/runnel-stream/runnel/outbox"
	"github.com/runnel-stream/runnel/producer"
	"github.com/runnel-stream/runnel/reshard"
	"github.com/runnel-stream/runnel/runneltest"
	"github.com/runnel-stream/runnel/sink/archive"
	"github.com/runnel-stream/runnel/sink/archive/table"
	"github.com/runnel-stream/runnel/sink/rollup"
	"github.com/runnel-stream/runnel/sink/rollup/dynamostore"
)

const (
	arn       = "arn:aws:kinesis:us-east-1:000000000000:stream/orders"
	malformed = "arn:aws:kinesis:us-east-1:000000000000:table/orders"
)

var silent = slog.New(slog.DiscardHandler)

// onlyARN makes a client refuse each call that names the stream by its name alone. It notes the
// calls that it lets pass.
func onlyARN(called *sync.Map) func(*kinesis.Options) {
	check := func(
		ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler,
	) (middleware.InitializeOutput, middleware.Metadata, error) {
		input := reflect.ValueOf(in.Parameters).Elem()
		field := func(name string) bool {
			f := input.FieldByName(name)
			return f.IsValid() && !f.IsNil()
		}
		call := strings.TrimSuffix(input.Type().Name(), "Input")
		if further := field("NextToken"); field("StreamName") || !field("StreamARN") && !further {
			return middleware.InitializeOutput{}, middleware.Metadata{},
				fmt.Errorf("%s by a name alone", call)
		}
		called.Store(call, true)
		return next.HandleInitialize(ctx, in)
	}
	return func(o *kinesis.Options) {
		o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
			return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("onlyARN", check),
				middleware.Before)
		})
	}
}

// world is a stream with records, and a client that calls it by its ARN alone.
type world struct {
	*testing.T
	server *runneltest.Server
	strict *kinesis.Client
	called sync.Map
}

func newWorld(t *testing.T) *world {
	w := &world{T: t, server: runneltest.NewServer(t, runneltest.WithStream("orders", 2))}
	w.strict = kinesis.New(w.server.Kinesis().Options(), onlyARN(&w.called))
	return w
}

// client returns the client for a stream that is named so.
func (w *world) client(stream string) *kinesis.Client {
	if stream == arn {
		return w.strict
	}
	return w.server.Kinesis()
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) put(stream string, n int, order producer.Order) {
	w.Helper()
	client := w.client(stream)
	p, err := producer.New(w.Context(), producer.Config{
		Stream: stream, Kinesis: client, Reader: client, Order: order, Logger: silent,
	})
	w.must(err)
	for i := range n {
		_, err := p.Put(w.Context(), runnel.Record{
			PartitionKey: fmt.Sprint("k", i), Data: fmt.Appendf(nil, `{"k":"k%d"}`, i),
		})
		w.must(err)
	}
	w.must(p.Close(w.Context()))
}

// work runs a worker until it has read what is there.
func (w *world) work(stream string, set func(*consumer.Config)) {
	w.Helper()
	cfg := consumer.Config{
		Stream: stream, Kinesis: w.client(stream), DynamoDB: w.server.DynamoDB(), Once: true,
		Logger: silent,
	}
	set(&cfg)
	worker, err := consumer.New(cfg)
	w.must(err)
	w.must(worker.Run(w.Context()))
}

// The halves of an application that name a stream by its ARN and by its name are one application,
// for handlers, archives and rollups; each call of the first half has the ARN.
func TestOneApplication(t *testing.T) {
	w := newWorld(t)
	archived := t.TempDir()
	db := sqlite(w)
	total := 0
	for i, stream := range []string{arn, "orders", arn} {
		w.put(stream, 10, []producer.Order{producer.OrderKey, producer.OrderShard}[i%2])
		total += 10
		got := 0
		w.work(stream, func(c *consumer.Config) {
			c.App = "handler"
			var mu sync.Mutex // two shards
			c.Handler = func(_ context.Context, b *consumer.Batch) error {
				mu.Lock()
				defer mu.Unlock()
				if b.Stream != "orders" {
					return errors.New("a batch of " + b.Stream)
				}
				got += len(b.Records)
				return nil
			}
		})
		if got != 10 {
			t.Errorf("%s: %d records", stream, got)
		}
		store, err := archive.NewDirStore(archived)
		w.must(err)
		to, err := archive.New(archive.Config{Store: store})
		w.must(err)
		w.work(stream, func(c *consumer.Config) { c.App, c.Sink = "archive", to })
		folders, err := filepath.Glob(filepath.Join(archived, "orders@*"))
		if arns, _ := filepath.Glob(filepath.Join(archived, "*arn*")); err != nil ||
			len(folders) != 1 || len(arns) > 0 {
			t.Fatalf("%s: the archive has %v %v", stream, folders, arns)
		}
		report, err := compare.Run(t.Context(), compare.Config{
			Stream: stream, Kinesis: w.client(stream), Archive: archive.NewReader(store),
			Complete: true,
		})
		w.must(err)
		if !report.OK() || report.Stream.Name != "orders" || report.Records != int64(total) {
			t.Errorf("%s: %+v", stream, report)
		}
		_, err = table.Open(t.Context(), table.Config{
			Store: store, Name: "t", Layout: table.Hour, Stream: stream,
		})
		w.must(err)
		w.rollup(stream, db, total)
		w.rows(stream, total)
	}
	for _, call := range []string{
		"DescribeStreamSummary", "ListShards", "GetShardIterator", "GetRecords", "PutRecords",
	} {
		if _, ok := w.called.Load(call); !ok {
			t.Errorf("%s was not called", call)
		}
	}
}

var counts = rollup.Definition{
	Keys: []rollup.Field{{Pointer: "/k"}}, Columns: []rollup.Column{{Op: rollup.Count}},
}.WithDefaults()

func sqlite(w *world) *sql.DB {
	db, err := sql.Open("sqlite", "file:"+filepath.Join(w.TempDir(), "rows.db")+
		"?_pragma=journal_mode(wal)&_pragma=synchronous(full)&_pragma=busy_timeout(10000)"+
		"&_txlock=immediate")
	w.must(err)
	w.Cleanup(func() { _ = db.Close() })
	return db
}

func (w *world) rollup(stream string, db *sql.DB, want int) {
	w.Helper()
	r, err := rollup.New(rollup.Config{
		Definition: counts, DB: db, Dialect: rollup.SQLite, Table: "counts", App: "rollup",
		Stream: stream, Logger: silent,
	})
	w.must(err)
	w.must(r.Prepare(w.Context()))
	w.work(stream, func(c *consumer.Config) { c.App, c.Sink = "rollup", r })
	var sum int
	w.must(db.QueryRowContext(w.Context(), "select sum(count) from counts").Scan(&sum))
	if sum != want {
		w.Errorf("%s: the rollup has %d records, want %d", stream, sum, want)
	}
}

func (w *world) rows(stream string, want int) {
	w.Helper()
	store, err := dynamostore.New(dynamostore.Config{
		DynamoDB: w.server.DynamoDB(), Table: "rows-table",
	})
	w.must(err)
	committed := 0
	rows, err := rollup.OpenRows(w.Context(), rollup.RowsConfig{
		Definition: counts, Store: store, Kinesis: w.client(stream), Leases: w.server.DynamoDB(),
		App: "rows", Stream: stream,
	})
	w.must(err)
	var mu sync.Mutex
	w.work(stream, func(c *consumer.Config) {
		c.App = "rows"
		c.Handler = func(ctx context.Context, b *consumer.Batch) error {
			mu.Lock()
			defer mu.Unlock()
			committed += len(b.Records)
			return rows.Handle(ctx, b)
		}
	})
	if committed != 10 {
		w.Errorf("%s: the rows got %d records of %d", stream, committed, want)
	}
}

// Resharding, moving keys, relaying and following go by the ARN.
func TestByARN(t *testing.T) {
	w := newWorld(t)
	w.put(arn, 10, producer.OrderShard)
	_, err := reshard.Observe(t.Context(), w.strict, arn, reshard.Window{Last: time.Hour},
		func(reshard.Seen) {})
	w.must(err)
	for _, want := range []int{4, 3} {
		shards, err := reshard.List(t.Context(), w.strict, arn)
		w.must(err)
		planned, err := plan.Uniform(reshard.OpenRanges(shards), want, 0)
		w.must(err)
		w.must(reshard.Apply(t.Context(), w.strict, arn, planned, nil))
	}
	w.must(reshard.Autoscale(t.Context(), reshard.AutoscaleConfig{
		Stream: arn, Kinesis: w.strict, Once: true, Every: time.Second, Window: time.Second,
	}))
	w.move()
	w.relay()
	seen := 0
	w.must(follow.Run(t.Context(), follow.Config{
		Stream: arn, Kinesis: w.strict, Once: true,
		Handle: func(_ context.Context, records iter.Seq[*runnel.Record]) error {
			for range records {
				seen++
			}
			return nil
		},
	}))
	if seen != 12 {
		t.Errorf("%d records, want those of the producer and the relay", seen)
	}
	for _, call := range []string{"SplitShard", "MergeShards"} {
		if _, ok := w.called.Load(call); !ok {
			t.Errorf("%s was not called", call)
		}
	}
}

// move moves a key while an application reads the stream.
func (w *world) move() {
	w.Helper()
	w.work("orders", func(c *consumer.Config) {
		c.App = "movers"
		c.Handler = func(context.Context, *consumer.Batch) error { return nil }
	})
	keys, err := keytable.Open(w.Context(), keytable.Config{
		DynamoDB: w.server.DynamoDB(), Table: "tenants", Interval: 100 * time.Millisecond,
	})
	w.must(err)
	from, err := keys.Key(w.Context(), "alice")
	w.must(err)
	to := from
	to.Lo++
	w.must(keys.Move(w.Context(), keytable.MoveConfig{
		Kinesis: w.strict, Stream: arn, Apps: []string{"movers"},
	}, []keytable.Move{{Name: "alice", From: from, To: to}}))
}

// relay relays a row by the ARN and another one by the name: the table belongs to one stream.
func (w *world) relay() {
	w.Helper()
	db := sqlite(w)
	box := outbox.Table{}
	w.must(outbox.Migrate(w.Context(), outbox.SQLite(db), box))
	for _, stream := range []string{arn, "orders"} {
		tx, err := db.BeginTx(w.Context(), nil)
		w.must(err)
		w.must(box.Insert(w.Context(), outbox.SQL(tx, outbox.DialectSQLite), outbox.Row{
			Key: "k", Data: []byte("row"),
		}))
		w.must(tx.Commit())
		relay, err := outbox.New(outbox.Config{
			DB: outbox.SQLite(db), Once: true, Logger: silent,
			Producer: producer.Config{Stream: stream, Kinesis: w.client(stream), Logger: silent},
		})
		w.must(err)
		w.must(relay.Run(w.Context()))
	}
}

// Every Config refuses a malformed ARN, and names its field.
func TestMalformed(t *testing.T) {
	client := kinesis.New(kinesis.Options{Region: "us-east-1"})
	for name, err := range map[string]error{
		"consumer": consumer.Config{Stream: malformed}.Validate(),
		"producer": producer.Config{Stream: malformed, Kinesis: client}.Validate(),
		"reshard":  reshard.AutoscaleConfig{Stream: malformed, Kinesis: client}.Validate(),
		"rollup":   rollup.Config{Stream: malformed}.Validate(),
		"rows":     rollup.RowsConfig{Stream: malformed}.Validate(),
		"follow":   follow.Run(t.Context(), follow.Config{Stream: malformed, Kinesis: client}),
		"keytable": (&keytable.Table{}).Move(t.Context(), keytable.MoveConfig{
			Stream: malformed, Kinesis: client,
		}, nil),
		"table": func() error {
			_, err := table.Open(t.Context(), table.Config{
				Store: storeOf(t), Name: "t", Layout: table.Hour, Stream: malformed,
			})
			return err
		}(),
	} {
		if err == nil || !strings.Contains(err.Error(), `Stream is "`+malformed+
			`", not a stream's ARN, since its resource is "table/orders"`) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func storeOf(t *testing.T) *archive.DirStore {
	store, err := archive.NewDirStore(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return store
}
