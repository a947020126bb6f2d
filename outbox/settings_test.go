package outbox_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/runnel-stream/runnel/outbox"
)

// A transaction with an id above that of the latest one that has ended is open, too, and may have
// drawn a low row id. The low mark waits for it, so that its row is not behind the next of its key.
func TestLowMarkWaits(t *testing.T) {
	b := newBox(t, outbox.DialectPostgres)
	r, _ := b.start()
	b.until("it leads", func() bool { return r.Stats().Leading })
	const keys = 20
	for k := range keys {
		early, err := b.sql.BeginTx(t.Context(), nil)
		b.must(err)
		_, err = early.ExecContext(t.Context(), "select pg_current_xact_id()")
		b.must(err)
		late, err := b.sql.BeginTx(t.Context(), nil)
		b.must(err)
		insert := func(key string) outbox.Row { return outbox.Row{Key: key, Data: []byte("1")} }
		key := fmt.Sprint("key", k)
		b.must(b.table.Insert(t.Context(), outbox.SQL(late, b.of), insert(key)))
		b.must(b.table.Insert(t.Context(), outbox.SQL(early, b.of), insert("other"+key)))
		b.must(early.Commit())
		time.Sleep(70 * time.Millisecond) // passes, which could raise the mark
		b.must(late.Commit())
		b.insert(outbox.Row{Key: key, Data: []byte("2")})
		time.Sleep(30 * time.Millisecond) // a pass
	}
	b.until("all is sent", func() bool { return r.Stats().Sent == 3*keys })
	b.wantNumbered(keys, 2)
	if got := r.Stats().Inversions; got > 0 {
		t.Errorf("%d inversions", got)
	}
}

// Rows without a key are held, and move when they are released.
func TestNullKeys(t *testing.T) {
	each(t, func(b *box) {
		if b.of == outbox.DialectPostgres {
			b.exec("alter table outbox alter partition_key drop not null")
		} else {
			b.exec("drop table outbox")
			b.exec("create table outbox (id integer primary key autoincrement, partition_key text, " +
				"record_data text, explicit_hash_key text)")
			b.exec("create index outbox_key_id on outbox (partition_key, id)")
			b.exec("insert into outbox (partition_key, record_data) values (x'ff', '0')")
		}
		b.exec("insert into outbox (partition_key, record_data) values (null, '1')")
		b.exec("insert into outbox (partition_key, record_data) values (null, '2')")
		b.insert(outbox.Row{Key: "key0", Data: []byte("1")})
		rows := b.count("outbox") - 1
		r, _ := b.start()
		for n := range rows { // each is the first one that cannot be put
			b.until("the rows are held", func() bool {
				return b.count("outbox_held") == 1 && b.count("outbox_dead") == n
			})
			ok, err := outbox.Release(t.Context(), b.db, b.table, "", true)
			if !ok || err != nil {
				t.Fatal(ok, err)
			}
		}
		b.until("no row is left", func() bool { return b.count("outbox") == 0 && r.Stats().Held == 0 })
		if n := b.count("outbox_dead"); n != rows {
			t.Errorf("%d dead letters, want %d", n, rows)
		}
		b.wantEmpty()
		b.wantNumbered(1, 1)
	})
}

// The settings of a role or a server change no byte, and stop nothing.
func TestSettings(t *testing.T) {
	b := newBox(t, outbox.DialectPostgres)
	for _, setting := range []string{
		"bytea_output = escape", "\"DateStyle\" = 'SQL, DMY'", "\"IntervalStyle\" = sql_standard",
		"extra_float_digits = -10",
		"standard_conforming_strings = off",
		"default_transaction_isolation = serializable", "\"TimeZone\" = 'Asia/Tokyo'",
		"search_path = ''", "lc_numeric = 'C'",
	} {
		b.exec("alter role postgres set " + setting)
	}
	b.table = outbox.Table{Name: `odd.TIMELINE 'x' DURABLE`, Type: outbox.Bytea}
	b.exec("create schema odd")
	b.db = outbox.Postgres(b.pool(b.url)) // with sessions of the new settings
	b.must(outbox.Migrate(t.Context(), b.db, b.table))
	data := "\x00\\\xff'\"☃"
	b.insert(outbox.Row{Key: "k", Data: []byte(data)}, outbox.Row{Key: "k", Data: []byte{}},
		outbox.Row{Key: "l", Data: []byte("1"), HashKey: "9"})
	b.exec(`insert into odd."TIMELINE 'x' DURABLE" (partition_key, record_data) values ('', 'x')`)
	if err := b.once(); !errors.Is(err, outbox.ErrHeld) {
		t.Fatal(err)
	}
	if got := b.records(); len(got["k"]) != 2 || got["k"][0] != data || got["k"][1] != "" {
		t.Errorf("%q", got)
	}
	status, err := outbox.ReadStatus(t.Context(), b.db, b.table)
	b.must(err)
	held, err := outbox.Held(t.Context(), b.db, b.table)
	b.must(err)
	if age := time.Since(held[0].Since); status.Held != 1 || age < 0 || age > time.Minute {
		t.Errorf("%+v, held for %v", status, age)
	}
	b.exec("alter role postgres set client_encoding = latin1")
	fresh := outbox.Postgres(b.pool(b.url))
	if err := outbox.Check(t.Context(), fresh, b.table); !errors.Is(err, outbox.ErrUnfit) {
		t.Error("client_encoding = latin1:", err)
	}
}

// A SQLite database may have a single connection.
func TestOneConnection(t *testing.T) {
	b := newBox(t, outbox.DialectSQLite)
	b.sql.SetMaxOpenConns(1)
	b.insert(numberedRows(3, 20)...)
	b.must(b.once())
	b.wantEmpty()
	b.wantNumbered(3, 20)
}

// A connection that hangs costs a time-out, and not the relay.
func TestHangingConnections(t *testing.T) {
	b, w := throughWire(t)
	r, _ := b.start()
	b.insert(numberedRows(3, 20)...)
	b.until("the first rows are sent", func() bool { return r.Stats().Sent == 60 })
	w.Hang()
	b.insert(numberedRows(3, 40)[60:]...)
	b.until("the other rows are sent", func() bool { return r.Stats().Sent == 120 })
	b.wantNumbered(3, 40)
}

// A database that hangs at the end delays the end by 15 s at most.
func TestEndOfHangingDatabase(t *testing.T) {
	b, w := throughWire(t)
	r, stop := b.start()
	b.insert(numberedRows(3, 20)...)
	b.until("the first rows are sent", func() bool { return r.Stats().Sent == 60 })
	w.Refuse()
	w.Hang()
	began := time.Now()
	b.must(stop())
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("it ended after %v", took)
	}
}
