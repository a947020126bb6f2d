package outbox_test

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/smithy-go"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/aggregate"
	"github.com/runnel-stream/runnel/internal/bootclock"
	"github.com/runnel-stream/runnel/internal/pgtest"
	"github.com/runnel-stream/runnel/outbox"
	"github.com/runnel-stream/runnel/producer"
)

// unit is a unit that an earlier relay has left in the journal.
type unit struct {
	number  uint64
	key     string
	ids     []int64
	records []runnel.Record
}

var earlier = aggregate.ProducerID{7, 7, 7}

// data returns the bytes of the unit.
func (b *box) data(u unit) []byte {
	b.t.Helper()
	data, err := producer.EncodeUnit(aggregate.Unit{
		Producer: earlier, Number: u.number, Low: 1,
	}, u.records)
	b.must(err)
	return data
}

// journal adds a unit to the journal, frozen now.
func (b *box) journal(u unit) {
	b.t.Helper()
	var ids any = u.ids
	if b.of == outbox.DialectSQLite {
		ids = strings.ReplaceAll(fmt.Sprint(u.ids), " ", ",")
	}
	crc := crc32.Checksum(b.data(u), crc32.MakeTable(crc32.Castagnoli))
	b.exec("insert into outbox_journal values (0, 1, $1, $2, 1, $3, '', $4, $5, $6, 0, $7, $8)",
		earlier[:], int64(u.number), u.key, ids, int64(crc), time.Now().UnixNano(), bootclock.ID(),
		int64(bootclock.Now().Boot()))
}

// unitOf returns a unit of rows in the table, from the nth of a key on.
func (b *box) unitOf(number uint64, key string, first, n int) unit {
	b.t.Helper()
	u := unit{number: number, key: key}
	found, err := b.sql.QueryContext(b.t.Context(), "select id, record_data from outbox "+
		"where partition_key = $1 order by id limit $2 offset $3", key, n, first)
	b.must(err)
	defer found.Close()
	for found.Next() {
		var id int64
		var data []byte
		b.must(found.Scan(&id, &data))
		u.ids = append(u.ids, id)
		u.records = append(u.records, runnel.Record{PartitionKey: key, Data: data})
	}
	b.must(found.Err())
	if len(u.ids) != n {
		b.t.Fatalf("%d rows of %s, want %d", len(u.ids), key, n)
	}
	return u
}

// A relay that takes over sends the open units of the journal first, under their old identity: one
// that was stored already becomes a double, which readers drop. Then it continues with the rest.
func TestTakeOver(t *testing.T) {
	each(t, func(b *box) {
		b.insert(numberedRows(3, 9)...)
		stored, open := b.unitOf(1, "key0", 0, 4), b.unitOf(2, "key1", 0, 5)
		gone, again := b.unitOf(3, "key2", 0, 2), b.unitOf(4, "key2", 2, 1)
		b.journal(stored)
		b.journal(open)
		_, err := b.server.Kinesis().PutRecord(t.Context(), &kinesis.PutRecordInput{
			StreamName: new("orders"), PartitionKey: new("key0"), Data: b.data(stored),
		})
		b.must(err)
		// The rows of one unit are gone; it has no effect. Of two units with one row the later
		// counts: the earlier one was never sent.
		gone.ids = []int64{-7, -8}
		again.ids[0] = open.ids[0]
		b.journal(gone)
		late := open
		late.number = 5
		b.exec("delete from outbox_journal where number = 2")
		b.journal(again)
		b.journal(late)
		b.must(b.once())
		b.wantEmpty()
		b.wantNumbered(3, 9)
		if n := b.count("outbox_held"); n > 0 {
			t.Errorf("%d keys are held", n)
		}
	})
}

// A unit whose rows have changed or are partly gone cannot be sent again: its key is held, and with
// DeadLetter its rows are dead letters.
func TestTakeOverOfChangedRows(t *testing.T) {
	t.Parallel()
	for _, dead := range []bool{false, true} {
		t.Run(fmt.Sprintf("DeadLetter=%v", dead), func(t *testing.T) {
			each(t, func(b *box) {
				b.insert(numberedRows(3, 3)...)
				changed, partly := b.unitOf(1, "key0", 0, 2), b.unitOf(2, "key1", 0, 2)
				b.journal(changed)
				b.journal(partly)
				b.exec("update outbox set record_data = '17' where id = $1", changed.ids[0])
				b.exec("delete from outbox where id = $1", partly.ids[0])
				err := b.once(func(c *outbox.Config) { c.DeadLetter = dead })
				got := b.records()
				if dead {
					b.must(err)
					b.wantEmpty()
					if b.count("outbox_dead") != 3 || len(got["key0"]) != 1 || len(got["key1"]) != 1 {
						t.Errorf("%d dead letters, the stream has %v", b.count("outbox_dead"), got)
					}
					return
				}
				if !errors.Is(err, outbox.ErrHeld) || len(got["key0"])+len(got["key1"]) > 0 ||
					len(got["key2"]) != 3 {
					t.Fatalf("%v, the stream has %v", err, got)
				}
				held, err := outbox.Held(t.Context(), b.db, b.table)
				b.must(err)
				if len(held) != 2 || b.count("outbox_journal") > 0 ||
					!strings.Contains(held[0].Reason, "the rows have changed") ||
					!strings.Contains(held[1].Reason, "1 of 2 rows are no longer there") {
					t.Fatalf("held: %v, %d units", held, b.count("outbox_journal"))
				}
				for _, h := range held {
					_, err := outbox.Release(t.Context(), b.db, b.table, h.Key, false)
					b.must(err)
				}
				b.must(b.once())
				b.wantEmpty()
				if got := b.records(); !slices.Equal(got["key0"], []string{"17", "2", "3"}) ||
					!slices.Equal(got["key1"], []string{"2", "3"}) {
					t.Errorf("%v", got)
				}
			})
		})
	}
}

// poisonous is a client whose stream refuses every call with a record of one key.
type poisonous struct {
	*kinesis.Client
	code   atomic.Pointer[string]
	refuse func(key string) bool
}

func (p *poisonous) PutRecords(
	ctx context.Context, in *kinesis.PutRecordsInput, options ...func(*kinesis.Options),
) (*kinesis.PutRecordsOutput, error) {
	for i := range in.Records {
		if code := p.code.Load(); *code != "" && p.refuse(*in.Records[i].PartitionKey) {
			return nil, &smithy.GenericAPIError{Code: *code, Message: "poison"}
		}
	}
	return p.Client.PutRecords(ctx, in, options...)
}

// A row that the stream itself refuses holds its key: no later row of the key is sent, although
// some are in the producer already, and all other keys flow. Released, all come in order.
func TestRefusedByTheStream(t *testing.T) {
	each(t, func(b *box) {
		client := &poisonous{Client: b.server.Kinesis(), refuse: func(key string) bool {
			return key == "key1"
		}}
		client.code.Store(new("InvalidArgumentException"))
		b.insert(numberedRows(3, 2000)...)
		small := func(c *outbox.Config) {
			c.Producer.Kinesis, c.Producer.MaxUnitBytes = client, 1000
		}
		r, _ := b.start(small)
		b.until("the others are sent", func() bool {
			s := r.Stats()
			return s.Sent == 4000 && s.Held == 1 && s.Rows == 0
		})
		if got := b.records(); len(got["key1"]) > 0 {
			t.Errorf("%d rows of the held key are in the stream", len(got["key1"]))
		}
		client.code.Store(new(""))
		b.until("the key is in the table", func() bool { return b.count("outbox_held") == 1 })
		_, err := outbox.Release(t.Context(), b.db, b.table, "key1", false)
		b.must(err)
		b.until("all is sent", func() bool { return r.Stats().Sent == 6000 })
		b.wantNumbered(3, 2000)
		b.until("the deletions are committed", func() bool { return b.count("outbox") == 0 })
	})
}

// A refusal of the caller holds nothing: the relay ends, hands the lease over, and the next one
// continues.
func TestRefusedCaller(t *testing.T) {
	each(t, func(b *box) {
		client := &poisonous{Client: b.server.Kinesis(), refuse: func(string) bool { return true }}
		client.code.Store(new("AccessDeniedException"))
		b.insert(numberedRows(3, 50)...)
		slow := func(c *outbox.Config) { c.Producer.Kinesis, c.Failover = client, time.Hour }
		began := time.Now()
		if err := b.once(slow); !errors.Is(err, producer.ErrRefusedCaller) {
			t.Fatal(err)
		}
		if took := time.Since(began); took > 30*time.Second { // once waits for a minute
			t.Errorf("it ended after %v", took)
		}
		if b.count("outbox") != 150 || b.count("outbox_held") > 0 {
			t.Errorf("%d rows, %d held keys", b.count("outbox"), b.count("outbox_held"))
		}
		client.code.Store(new(""))
		b.must(b.once(slow))
		b.wantNumbered(3, 50)
		b.wantEmpty()
	})
}

// throughWire returns a box whose relay reaches PostgreSQL through a wire. The writers do not.
func throughWire(t *testing.T, marks ...string) (*box, *pgtest.Wire) {
	b := newBox(t, outbox.DialectPostgres)
	w := pgtest.NewWire(t, b.url, marks...)
	b.db = outbox.Postgres(b.pool(w.URL))
	return b, w
}

func (b *box) pool(url string) *pgxpool.Pool {
	b.t.Helper()
	pool, err := pgxpool.New(b.t.Context(), url)
	b.must(err)
	b.t.Cleanup(pool.Close)
	return pool
}

// Answers of the relay's transactions are lost: some are carried out, some are carried out later
// than their repetition. Nothing is lost, doubled or held.
func TestLostCommits(t *testing.T) {
	b, w := throughWire(t, `into "public"."outbox_journal"`, `delete from "public"."outbox"`)
	r, _ := b.start(func(c *outbox.Config) { c.Producer.MaxUnitBytes = 2000 })
	var writers sync.WaitGroup
	for w := range 4 {
		writers.Go(func() {
			for n := range 300 {
				b.insert(outbox.Row{Key: fmt.Sprint("key", w), Data: fmt.Append(nil, n+1)})
			}
		})
	}
	writers.Wait()
	b.until("all is sent", func() bool { return b.count("outbox") == 0 && r.Stats().Rows == 0 })
	w.Hit(0)
	b.wantNumbered(4, 300)
	time.Sleep(400 * time.Millisecond) // the late transactions of the wire
	if hits, epoch := w.Hits(), r.Stats().Epoch; hits < 5 || epoch < hits/2 {
		t.Errorf("%d answers were lost, the epoch is %d", hits, epoch)
	}
	if n := b.count("outbox_held") + b.count("outbox_journal"); n > 0 {
		t.Errorf("%d held keys and units", n)
	}
}

// While a snapshot is held open, deleted rows stay in the index. Passes begin behind them.
func TestHeldSnapshot(t *testing.T) {
	b := newBox(t, outbox.DialectPostgres)
	b.insert(numberedRows(100, 200)...)
	pool := b.pool(b.url)
	tx, err := pool.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	b.must(err)
	defer func() { _ = tx.Rollback(context.Background()) }()
	var n int
	b.must(tx.QueryRow(t.Context(), "select count(*) from outbox").Scan(&n))
	r, _ := b.start()
	b.until("all is sent", func() bool { return r.Stats().Sent == 20_000 })
	b.exec("analyze outbox") // as autovacuum does some time
	read := func() (n int64) {
		b.must(pool.QueryRow(t.Context(), "select heap_blks_read + heap_blks_hit + idx_blks_read + "+
			"idx_blks_hit from pg_statio_user_tables where relname = 'outbox'").Scan(&n))
		return n
	}
	b.until("passes read few blocks", func() bool { // the deleted rows are in some 300
		before := read()
		time.Sleep(1500 * time.Millisecond) // the measured time: some 25 passes
		blocks := read() - before
		return 0 < blocks && blocks < 500
	})
	b.insert(outbox.Row{Key: "key0", Data: []byte("201")})
	b.until("a new row is sent", func() bool { return r.Stats().Sent == 20_001 })
}

// Writers that draw their id before their transaction has an id may commit below the low mark. Such
// a row is found within seconds, and the inversion is counted.
func TestLateCommit(t *testing.T) {
	b := newBox(t, outbox.DialectPostgres)
	r, _ := b.start()
	pool := b.pool(b.url)
	var id int64
	b.must(pool.QueryRow(t.Context(),
		"select nextval(pg_get_serial_sequence('outbox', 'id'))").Scan(&id))
	b.insert(numberedRows(1, 3)...)
	b.until("the others are sent", func() bool { return r.Stats().Sent == 3 })
	time.Sleep(300 * time.Millisecond) // passes, which raise the low mark
	_, err := pool.Exec(t.Context(), "insert into outbox (id, partition_key, record_data) "+
		"overriding system value values ($1, 'key0', '0')", id)
	b.must(err)
	b.until("it is found", func() bool { return r.Stats().Sent == 4 })
	if got := r.Stats().Inversions; got != 1 {
		t.Errorf("%d inversions", got)
	}
	status, err := outbox.ReadStatus(t.Context(), b.db, b.table)
	b.until("the count is in the table", func() bool {
		status, err = outbox.ReadStatus(t.Context(), b.db, b.table)
		return status.Inversions == 1
	})
	b.must(err)
}

// A relay needs no rights but those on its own tables, and to read and delete the rows. One without
// them names the right.
func TestRelayRights(t *testing.T) {
	b := newBox(t, outbox.DialectPostgres)
	p := &postgres{t: t, url: b.url, pool: b.pool(b.url)}
	b.db = outbox.Postgres(p.as("relay"))
	b.insert(numberedRows(2, 10)...)
	if err := b.once(); err == nil || !strings.Contains(err.Error(), "grant select, delete") {
		t.Errorf("without rights: %v", err)
	}
	p.exec("grant select on outbox to relay")
	p.exec("grant select, insert, update, delete on outbox_journal, outbox_lease, outbox_held, " +
		"outbox_dead to relay")
	if err := b.once(); err == nil || !strings.Contains(err.Error(), "grant select, delete") {
		t.Errorf("without the right to delete: %v", err)
	}
	p.exec("grant delete on outbox to relay")
	b.must(b.once())
	b.wantEmpty()
	b.wantNumbered(2, 10)
}

// A database that answers reads and fails deletions stops the intake, and nothing is lost.
func TestDeletionsFail(t *testing.T) {
	b := newBox(t, outbox.DialectPostgres)
	b.exec(`create function refuse() returns trigger language plpgsql as
		$$ begin raise exception 'no deletion today'; end $$`) // of any row
	b.exec("create trigger refuse after delete on outbox for each row execute function refuse()")
	b.insert(numberedRows(100, 100)...)
	r, _ := b.start(func(c *outbox.Config) { c.Producer.MaxBufferedRecords = 1600 })
	b.until("the buffer is full", func() bool { return r.Stats().Rows > 800 })
	time.Sleep(500 * time.Millisecond) // it would grow
	if s := r.Stats(); s.Rows > 1600 || s.Sent > 0 {
		t.Errorf("%d rows were read, %d are sent", s.Rows, s.Sent)
	}
	b.exec("drop trigger refuse on outbox")
	b.until("all is sent", func() bool { return r.Stats().Sent == 10_000 })
	b.wantNumbered(100, 100)
}

// A stream and a database that are away for a while cost nothing, and the relay goes on by itself.
func TestOutages(t *testing.T) {
	b := newBox(t, outbox.DialectPostgres)
	r, _ := b.start()
	b.insert(numberedRows(5, 100)...)
	b.must(b.server.Kill())
	b.insert(numberedRows(5, 200)[500:]...)
	b.postgres.Kill()
	time.Sleep(300 * time.Millisecond) // the outage of both
	b.must(b.server.Restart(t.Context()))
	time.Sleep(300 * time.Millisecond) // the outage of the database
	b.postgres.Start()
	b.until("all is sent", func() bool { return r.Stats().Sent == 1000 })
	b.wantNumbered(5, 200)
}

// A new timeline of the server is another database: the relay forgets what it knows, and begins as
// after a take-over.
func TestNewTimeline(t *testing.T) {
	b := newBox(t, outbox.DialectPostgres)
	r, _ := b.start(func(c *outbox.Config) { c.Failover = time.Hour })
	b.insert(numberedRows(5, 100)...)
	b.until("all is sent", func() bool { return r.Stats().Sent == 500 })
	before := r.Stats().Epoch
	b.postgres.Promote()
	b.insert(numberedRows(5, 200)[500:]...)
	b.until("the rest is sent", func() bool { return r.Stats().Sent == 1000 })
	if got := r.Stats().Epoch; got <= before {
		t.Errorf("the epoch is %d, it was %d", got, before)
	}
	b.wantNumbered(5, 200)
}

// A hot key does not keep the others waiting, and its rows come in order.
func TestHotKey(t *testing.T) {
	each(t, func(b *box) {
		b.must(b.server.SetLimits("write-bytes=20KiB"))
		var rows []outbox.Row
		for n := range 5000 {
			rows = append(rows, outbox.Row{Key: "hot", Data: fmt.Append(nil, n+1)})
		}
		b.insert(rows...)
		b.insert(numberedRows(20, 2)...)
		r, _ := b.start(func(c *outbox.Config) {
			c.Producer.MaxBufferedRecords, c.Producer.MaxUnitBytes = 3200, 2000
		})
		b.until("the others are there", func() bool {
			var n int
			b.must(b.sql.QueryRowContext(t.Context(),
				"select count(*) from outbox where partition_key <> 'hot'").Scan(&n))
			return n == 0
		})
		if hot := b.count("outbox"); hot < 2500 {
			t.Errorf("the others came when %d rows of the hot key were left", hot)
		}
		b.must(b.server.SetLimits(""))
		b.until("all is sent", func() bool { return r.Stats().Sent == 5040 })
		b.wantNumbered(20, 2)
		got := b.records()["hot"]
		for i := range got {
			if got[i] != fmt.Sprint(i+1) {
				t.Fatalf("row %d of the hot key is %s", i+1, got[i])
			}
		}
		if len(got) != 5000 {
			t.Errorf("%d rows of the hot key", len(got))
		}
	})
}

// An idle relay asks the database at most 20 times a second.
func TestIdle(t *testing.T) {
	b := newBox(t, outbox.DialectPostgres)
	cfg, err := pgxpool.ParseConfig(b.url)
	b.must(err)
	var queries counter
	cfg.ConnConfig.Tracer = &queries
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	b.must(err)
	defer pool.Close()
	b.db = outbox.Postgres(pool)
	r, stop := b.start(func(c *outbox.Config) { c.Failover = 10 * time.Second })
	b.until("it leads", func() bool { return r.Stats().Leading })
	time.Sleep(time.Second) // the first passes
	before := queries.n.Load()
	time.Sleep(5 * time.Second) // the measured time
	if n := queries.n.Load() - before; n > 100 || n < 20 {
		t.Errorf("%d queries in 5 s", n)
	}
	b.must(stop())
}

// counter counts queries.
type counter struct{ n atomic.Int64 }

func (c *counter) TraceQueryStart(
	ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData,
) context.Context {
	c.n.Add(1)
	return ctx
}

func (*counter) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}
