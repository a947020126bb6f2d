package outbox_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/runnel-stream/runnel/outbox"
)

// While rows are on their way, the table is emptied and its ids are drawn again. The new rows are
// other rows: they are all sent, and none is deleted in the place of an old one.
func TestReusedIDs(t *testing.T) {
	each(t, func(b *box) {
		b.must(b.server.SetFaults("seed=1 PutRecords:delay=1s%100"))
		r, _ := b.start()
		var old, other []outbox.Row
		for n := range 300 {
			old = append(old, outbox.Row{Key: fmt.Sprint("old", n%7), Data: fmt.Append(nil, n)})
			other = append(other, outbox.Row{Key: fmt.Sprint("key", n%3), Data: fmt.Append(nil, n/3+1)})
		}
		b.insert(old...)
		b.until("the old rows are on their way", func() bool { return r.Stats().Units >= 7 })
		if b.of == outbox.DialectPostgres {
			b.exec("truncate outbox restart identity")
		} else {
			b.exec("delete from outbox")
			b.exec("delete from sqlite_sequence where name = 'outbox'")
		}
		b.insert(other...)
		b.must(b.server.SetFaults(""))
		b.until("the table is empty", func() bool { return b.count("outbox") == 0 && r.Stats().Rows == 0 })
		b.wantNumbered(3, 100)
	})
}

// One row that cannot be deleted stops no other. It stays in the journal, so that the next relay's
// copy of it is a double.
func TestStuckRow(t *testing.T) {
	b := newBox(t, outbox.DialectPostgres)
	b.insert(numberedRows(5, 20)...)
	b.exec("create table refs (id bigint references outbox (id))")
	b.exec("insert into refs select id from outbox where partition_key = 'key3' limit 1")
	r, stop := b.start(func(c *outbox.Config) { c.Producer.MaxUnitBytes = 200 })
	b.insert(numberedRows(5, 60)[100:]...)
	b.until("the others are deleted", func() bool {
		var n int
		b.must(b.sql.QueryRowContext(t.Context(),
			"select count(*) from outbox where partition_key <> 'key3'").Scan(&n))
		return n == 0
	})
	b.until("most of the key is deleted", func() bool { return b.count("outbox") < 20 })
	if b.count("outbox") == 0 || b.count("outbox_journal") != 1 || r.Stats().Held > 0 {
		t.Errorf("%d rows, %d units, %+v", b.count("outbox"), b.count("outbox_journal"), r.Stats())
	}
	b.must(stop())
	b.wantNumbered(5, 60)
	if err := b.once(); !errors.Is(err, outbox.ErrStuck) {
		t.Error(err)
	}
	b.exec("delete from refs")
	b.must(b.once())
	b.wantEmpty()
	b.wantNumbered(5, 60)
}

// A table that keeps rows in spite of a deletion is refused, also if it begins to do so later: the
// relay would send its rows again and again.
func TestUndeletable(t *testing.T) {
	b := newBox(t, outbox.DialectPostgres)
	r, err := outbox.New(b.config())
	b.must(err)
	ended := make(chan error, 1)
	go func() { ended <- r.Run(t.Context()) }()
	b.until("it leads", func() bool { return r.Stats().Leading })
	b.exec("create function keep() returns trigger language plpgsql as $$ begin return null; end $$")
	b.exec("create trigger keep before delete on outbox for each row execute function keep()")
	b.insert(numberedRows(2, 2)...)
	select {
	case err := <-ended:
		if !errors.Is(err, outbox.ErrStuck) {
			t.Error(err)
		}
	case <-time.After(20 * time.Second):
		t.Error("the relay goes on")
	}
	if err := b.once(); !errors.Is(err, outbox.ErrUnfit) {
		t.Error(err)
	}
}

// With DeadLetter no key is held, also none of an earlier relay.
func TestDeadLetterOfHeldKeys(t *testing.T) {
	each(t, func(b *box) {
		b.exec("insert into outbox (partition_key, record_data) values ('', '1')")
		b.exec("insert into outbox (partition_key, record_data) values ('', '2')")
		if err := b.once(); !errors.Is(err, outbox.ErrHeld) {
			t.Fatal(err)
		}
		b.must(b.once(func(c *outbox.Config) { c.DeadLetter = true }))
		b.wantEmpty()
		if b.count("outbox_dead") != 2 || b.count("outbox_held") != 0 {
			t.Errorf("%d dead letters, %d held keys", b.count("outbox_dead"), b.count("outbox_held"))
		}
	})
}

// While rows are on their way, the table is rewritten, and columns are updated that are no part of
// the records. Each row is sent once.
func TestRewrittenRows(t *testing.T) {
	b := newBox(t, outbox.DialectPostgres)
	b.must(b.server.SetFaults("seed=1 PutRecords:delay=1s%100"))
	r, _ := b.start()
	b.insert(numberedRows(3, 50)...)
	b.until("the rows are on their way", func() bool { return r.Stats().Units >= 3 })
	b.exec("alter table outbox add column more double precision default random()")
	b.exec("update outbox set created_at = now() where partition_key = 'key1'")
	b.must(b.server.SetFaults(""))
	b.until("the table is empty", func() bool { return b.count("outbox") == 0 && r.Stats().Rows == 0 })
	b.wantNumbered(3, 50)
}

// A row that another transaction has locked stops no other.
func TestLockedRow(t *testing.T) {
	b := newBox(t, outbox.DialectPostgres)
	b.insert(numberedRows(5, 20)...)
	tx, err := b.sql.BeginTx(t.Context(), nil)
	b.must(err)
	_, err = tx.ExecContext(t.Context(), "select from outbox where partition_key = 'key3' for update")
	b.must(err)
	r, _ := b.start(func(c *outbox.Config) { c.Failover = 2 * time.Second })
	b.until("the others are deleted", func() bool { return b.count("outbox") == 20 })
	b.insert(numberedRows(5, 21)[100:]...)
	b.until("more are deleted", func() bool { return b.count("outbox") <= 21 })
	b.must(tx.Rollback())
	b.until("all is sent", func() bool { return r.Stats().Sent == 105 })
	b.wantNumbered(5, 21)
}

// A lock of the table that lasts longer than the failover time does not move the lease.
func TestLockedTable(t *testing.T) {
	b := newBox(t, outbox.DialectPostgres)
	failover := func(c *outbox.Config) { c.Failover = 3 * time.Second }
	first, _ := b.start(failover)
	b.until("the first one leads", func() bool { return first.Stats().Leading })
	second, _ := b.start(failover)
	tx, err := b.sql.BeginTx(t.Context(), nil)
	b.must(err)
	_, err = tx.ExecContext(t.Context(), "lock table outbox in access exclusive mode")
	b.must(err)
	time.Sleep(6 * time.Second) // twice the failover time
	b.must(tx.Rollback())
	if !first.Stats().Leading || second.Stats().Leading {
		t.Error("the lease has moved")
	}
	b.insert(numberedRows(3, 5)...)
	b.until("all is sent", func() bool { return first.Stats().Sent == 15 })
}

// A bad row that cannot become a dead letter holds its key, and the others flow.
func TestDeadLetterRefused(t *testing.T) {
	b := newBox(t, outbox.DialectPostgres)
	b.exec("insert into outbox (partition_key, record_data) values ('', '1')")
	b.exec("create table refs (id bigint references outbox (id))")
	b.exec("insert into refs select id from outbox")
	b.insert(numberedRows(3, 5)...)
	for range 2 { // the second one finds the key held
		err := b.once(func(c *outbox.Config) { c.DeadLetter = true })
		if !errors.Is(err, outbox.ErrHeld) {
			t.Fatal(err)
		}
	}
	b.wantNumbered(3, 5)
	if b.count("outbox") != 1 || b.count("outbox_dead") != 0 {
		t.Errorf("%d rows, %d dead letters", b.count("outbox"), b.count("outbox_dead"))
	}
}

// A trigger of SQLite that ignores deletions ends the relay, and is refused at the start.
func TestUndeletableSQLite(t *testing.T) {
	b := newBox(t, outbox.DialectSQLite)
	r, err := outbox.New(b.config())
	b.must(err)
	ended := make(chan error, 1)
	go func() { ended <- r.Run(t.Context()) }()
	b.until("it leads", func() bool { return r.Stats().Leading })
	b.exec("create trigger keep before delete on outbox begin select raise(ignore); end")
	b.insert(numberedRows(2, 2)...)
	if err := <-ended; !errors.Is(err, outbox.ErrStuck) {
		t.Error(err)
	}
	if b.count("outbox_journal") == 0 {
		t.Error("the journal has forgotten the units")
	}
	if err := b.once(); !errors.Is(err, outbox.ErrUnfit) {
		t.Error(err)
	}
}

// A released key's dead letters are rows of that key, also if its ids were drawn again.
func TestReleaseOfReusedIDs(t *testing.T) {
	each(t, func(b *box) {
		b.exec("insert into outbox (partition_key, record_data) values ('', '1')")
		if err := b.once(); !errors.Is(err, outbox.ErrHeld) {
			t.Fatal(err)
		}
		b.exec("delete from outbox")
		b.exec("insert into outbox (id, partition_key, record_data) " +
			map[bool]string{true: "overriding system value "}[b.of == outbox.DialectPostgres] +
			"values (1, 'key0', '1')")
		b.must(b.once(func(c *outbox.Config) { c.DeadLetter = true }))
		b.wantNumbered(1, 1)
	})
}
