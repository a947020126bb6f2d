package outbox_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/runnel-stream/runnel/consumer"
	"github.com/runnel-stream/runnel/internal/pgtest"
	"github.com/runnel-stream/runnel/outbox"
	"github.com/runnel-stream/runnel/producer"
	"github.com/runnel-stream/runnel/runneltest"
)

// box is a database with a table, and the server of its stream.
type box struct {
	t      *testing.T
	server *runneltest.Server
	db     outbox.DB
	sql    *sql.DB
	of     outbox.Dialect
	table  outbox.Table

	postgres *pgtest.Server // nil: SQLite
	url      string
}

// each runs a test with each kind of database.
func each(t *testing.T, test func(b *box)) {
	t.Helper()
	t.Parallel()
	t.Run("PostgreSQL", func(t *testing.T) { test(newBox(t, outbox.DialectPostgres)) })
	t.Run("SQLite", func(t *testing.T) { test(newBox(t, outbox.DialectSQLite)) })
}

func newBox(t *testing.T, of outbox.Dialect) *box {
	t.Parallel()
	b := &box{t: t, of: of}
	if of == outbox.DialectPostgres {
		b.postgres = pgtest.New(t)
		b.url = b.postgres.URL
		b.db = outbox.Postgres(b.pool(b.url))
		b.open("pgx", b.url)
	} else {
		b.open("sqlite", "file:"+filepath.Join(t.TempDir(), "app.db")+
			"?_pragma=journal_mode(wal)&_pragma=synchronous(full)&_pragma=busy_timeout(10000)"+
			"&_txlock=immediate")
		b.db = outbox.SQLite(b.sql)
	}
	b.server = runneltest.NewServer(t, runneltest.WithStream("orders", 4))
	b.must(outbox.Migrate(t.Context(), b.db, b.table))
	b.must(outbox.Migrate(t.Context(), b.db, b.table)) // it may be repeated
	return b
}

func (b *box) open(driver, name string) {
	var err error
	b.sql, err = sql.Open(driver, name)
	b.must(err)
	b.t.Cleanup(func() { _ = b.sql.Close() })
}

func (b *box) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *box) exec(text string, args ...any) {
	b.t.Helper()
	_, err := b.sql.ExecContext(b.t.Context(), text, args...)
	b.must(err)
}

// insert commits rows.
func (b *box) insert(rows ...outbox.Row) {
	b.t.Helper()
	tx, err := b.sql.BeginTx(b.t.Context(), nil)
	b.must(err)
	b.must(b.table.Insert(b.t.Context(), outbox.SQL(tx, b.of), rows...))
	b.must(tx.Commit())
}

// numbered returns rows of some keys. The data of each is its number in its key.
func numberedRows(keys, each int) (rows []outbox.Row) {
	for n := range each {
		for k := range keys {
			rows = append(rows, outbox.Row{Key: fmt.Sprint("key", k), Data: fmt.Append(nil, n+1)})
		}
	}
	return rows
}

func (b *box) config(change ...func(*outbox.Config)) outbox.Config {
	cfg := outbox.Config{
		DB: b.db, Table: b.table, Failover: time.Second, Logger: slog.New(slog.DiscardHandler),
		Producer: producer.Config{Stream: "orders", Kinesis: b.server.Kinesis()},
	}
	if os.Getenv("VERBOSE") != "" {
		cfg.Logger = slog.Default()
	}
	for _, c := range change {
		c(&cfg)
	}
	return cfg
}

// once relays everything that is in the table.
func (b *box) once(change ...func(*outbox.Config)) error {
	b.t.Helper()
	cfg := b.config(append(change, func(c *outbox.Config) { c.Once = true })...)
	r, err := outbox.New(cfg)
	b.must(err)
	ctx, cancel := context.WithTimeout(b.t.Context(), time.Minute)
	defer cancel()
	return r.Run(ctx)
}

// start runs a relay until the test's end, or until stop.
func (b *box) start(change ...func(*outbox.Config)) (r *outbox.Relay, stop func() error) {
	b.t.Helper()
	r, err := outbox.New(b.config(change...))
	b.must(err)
	ctx, cancel := context.WithCancel(b.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	stop = sync.OnceValue(func() error {
		cancel()
		return <-ended
	})
	b.t.Cleanup(func() { _ = stop() })
	return r, stop
}

// until waits until a condition holds.
func (b *box) until(what string, holds func() bool) {
	b.t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			b.t.Fatalf("waited in vain until %s", what)
		}
	}
}

func (b *box) count(table string) (n int) {
	b.t.Helper()
	b.must(b.sql.QueryRowContext(b.t.Context(), "select count(*) from "+table).Scan(&n))
	return n
}

func (b *box) wantEmpty() {
	b.t.Helper()
	if rows, units := b.count("outbox"), b.count("outbox_journal"); rows+units > 0 {
		b.t.Errorf("%d rows and %d units are left", rows, units)
	}
}

// records returns the records of the stream by their keys, in the stream's order, as runnel's
// consumers deliver them.
func (b *box) records() map[string][]string {
	b.t.Helper()
	var mu sync.Mutex
	got := map[string][]string{}
	w, err := consumer.New(consumer.Config{
		Stream: "orders", App: fmt.Sprint("test", rand.Uint64()), Once: true,
		Kinesis: b.server.Kinesis(), DynamoDB: b.server.DynamoDB(),
		Handler: func(_ context.Context, batch *consumer.Batch) error {
			mu.Lock()
			defer mu.Unlock()
			for _, r := range batch.Records {
				got[r.PartitionKey] = append(got[r.PartitionKey], string(r.Data))
			}
			return nil
		},
		Logger: slog.New(slog.DiscardHandler),
	})
	b.must(err)
	b.must(w.Run(b.t.Context()))
	return got
}

// wantNumbered checks that the stream has every number of some keys once and in order.
func (b *box) wantNumbered(keys, each int) {
	b.t.Helper()
	got := b.records()
	for k := range keys {
		key := fmt.Sprint("key", k)
		for i := range max(each, len(got[key])) {
			if want := fmt.Sprint(i + 1); i >= len(got[key]) || i >= each || got[key][i] != want {
				b.t.Errorf("%s: record %d of %d is wrong: %.200v", key, i+1, each, got[key])
				break
			}
		}
	}
}

// A relay puts the rows of the table, in the order of each key, and leaves none behind.
func TestOnce(t *testing.T) {
	each(t, func(b *box) {
		b.insert(numberedRows(7, 300)...)
		began := time.Now()
		b.must(b.once())
		t.Log(time.Since(began))
		b.wantEmpty()
		b.wantNumbered(7, 300)
		b.must(b.once()) // nothing to do
	})
}

// The data goes out as it is: JSON as its text, an explicit hash key with it.
func TestData(t *testing.T) {
	each(t, func(b *box) {
		b.insert(outbox.Row{Key: "a", Data: []byte(`{"b": 1}`), HashKey: "17"},
			outbox.Row{Key: "a", Data: []byte(`"☃"`), HashKey: "17"})
		b.must(b.once())
		if got := b.records()["a"]; len(got) != 2 || got[0] != `{"b": 1}` || got[1] != `"☃"` {
			t.Errorf("%q", got)
		}
	})
}

// While it runs, a relay takes rows that are committed later, by several writers at once.
func TestRelay(t *testing.T) {
	each(t, func(b *box) {
		r, stop := b.start()
		var writers sync.WaitGroup
		for w := range 4 {
			writers.Go(func() {
				for n := range 100 {
					b.insert(outbox.Row{Key: fmt.Sprint("key", w), Data: fmt.Append(nil, n+1)})
				}
			})
		}
		writers.Wait()
		b.until("all is sent", func() bool { return r.Stats().Sent == 400 })
		b.must(stop())
		b.wantEmpty()
		b.wantNumbered(4, 100)
		if got := r.Stats(); got.Inversions > 0 || got.Leading {
			t.Errorf("%+v", got)
		}
	})
}

// A row that no stream takes holds its key, from that row on; the other keys flow. Released, it is
// tried again; released with skip it becomes a dead letter.
func TestHeld(t *testing.T) {
	each(t, func(b *box) {
		huge := json.RawMessage(`"` + string(make([]byte, 0)) + fmt.Sprintf("%01100000d", 7) + `"`)
		b.insert(
			outbox.Row{Key: "key0", Data: []byte("1")}, outbox.Row{Key: "bad", Data: []byte("1")},
			outbox.Row{Key: "bad", Data: huge}, outbox.Row{Key: "bad", Data: []byte("2")},
			outbox.Row{Key: "key0", Data: []byte("2")},
		)
		b.exec("insert into outbox (partition_key, record_data) values ('', '1')")
		if err := b.once(); !errors.Is(err, outbox.ErrHeld) {
			t.Fatal(err)
		}
		held, err := outbox.Held(t.Context(), b.db, b.table)
		b.must(err)
		if len(held) != 2 || b.count("outbox") != 3 {
			t.Fatalf("%d rows are left, held: %.300v", b.count("outbox"), held)
		}
		b.wantNumbered(1, 2)
		if got := b.records()["bad"]; len(got) != 1 {
			t.Errorf("the held key has %.100q", got)
		}
		r, _ := b.start()
		b.until("the keys are held again", func() bool { return r.Stats().Held == 2 })
		release := func(key string, skip bool) {
			t.Helper()
			if ok, err := outbox.Release(t.Context(), b.db, b.table, key, skip); !ok || err != nil {
				t.Fatal(ok, err)
			}
		}
		release("bad", true)
		release("", true)
		b.until("the rest is sent", func() bool { return r.Stats().Sent == 1 && r.Stats().Held == 0 })
		if got := b.records()["bad"]; len(got) != 2 || got[1] != "2" || b.count("outbox_dead") != 2 {
			t.Errorf("the released key has %.100q, and there are %d dead letters", got,
				b.count("outbox_dead"))
		}
		if ok, err := outbox.Release(t.Context(), b.db, b.table, "bad", false); ok || err != nil {
			t.Error("a key that is not held was released", err)
		}
		b.wantEmpty()
	})
}

// With DeadLetter the rows that no stream takes are moved, and their keys go on.
func TestDeadLetter(t *testing.T) {
	each(t, func(b *box) {
		b.insert(numberedRows(2, 3)...)
		b.exec("insert into outbox (partition_key, record_data) values ('', '1')")
		b.exec("insert into outbox (partition_key, record_data, explicit_hash_key) " +
			"values ('key0', '7', '-1')")
		b.insert(outbox.Row{Key: "key0", Data: []byte("4")}, outbox.Row{Key: "key1", Data: []byte("4")})
		b.must(b.once(func(c *outbox.Config) { c.DeadLetter = true }))
		b.wantEmpty()
		b.wantNumbered(2, 4)
		if n := b.count("outbox_dead where reason <> ''"); n != 2 {
			t.Errorf("%d dead letters", n)
		}
	})
}

// A relay that ends hands the lease over at once; one that is alive keeps it.
func TestStandby(t *testing.T) {
	each(t, func(b *box) {
		slow := func(c *outbox.Config) { c.Failover = time.Hour }
		first, stop := b.start(slow)
		b.until("the first one leads", func() bool { return first.Stats().Leading })
		second, _ := b.start(slow)
		b.insert(numberedRows(2, 10)...)
		b.until("the rows are sent", func() bool { return first.Stats().Sent == 20 })
		if second.Stats().Leading {
			t.Error("two relays lead")
		}
		b.must(stop())
		b.until("the second one leads", func() bool { return second.Stats().Leading })
		b.insert(outbox.Row{Key: "key0", Data: []byte("11")}, outbox.Row{Key: "key1", Data: []byte("11")})
		b.until("the rows are sent", func() bool { return second.Stats().Sent == 2 })
		b.wantNumbered(2, 11)
	})
}

// A table that went into one stream does not go into another, nor into one that was created again
// under its name.
func TestOtherStream(t *testing.T) {
	each(t, func(b *box) {
		b.insert(numberedRows(1, 1)...)
		b.must(b.once())
		b.server = runneltest.NewServer(t, runneltest.WithStream("orders", 1))
		if err := b.once(); !errors.Is(err, outbox.ErrOtherStream) {
			t.Error(err)
		}
	})
}
