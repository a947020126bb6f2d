package outbox_test

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"

	"github.com/runnel-stream/runnel/internal/pgtest"
	"github.com/runnel-stream/runnel/outbox"
)

// postgres is a server with a table.
type postgres struct {
	t    *testing.T
	url  string
	pool *pgxpool.Pool
}

func newPostgres(t *testing.T, table outbox.Table) *postgres {
	t.Helper()
	t.Parallel()
	p := &postgres{t: t, url: pgtest.New(t).URL}
	var err error
	if p.pool, err = pgxpool.New(t.Context(), p.url); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.pool.Close)
	statements, err := table.Schema(outbox.DialectPostgres)
	p.must(err)
	for range 2 { // each may be carried out again
		for _, text := range statements {
			p.exec(text)
		}
	}
	return p
}

func (p *postgres) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

func (p *postgres) exec(text string, args ...any) {
	p.t.Helper()
	_, err := p.pool.Exec(p.t.Context(), text, args...)
	p.must(err)
}

// inversions returns how many rows have an id below that of a row of their key that was committed
// before: data is the key's counter.
func (p *postgres) inversions() (rows, inversions int) {
	p.t.Helper()
	found, err := p.pool.Query(p.t.Context(),
		"select partition_key, (record_data->>'n')::int from outbox order by id")
	p.must(err)
	last := map[string]int{}
	var key string
	var n int
	_, err = pgx.ForEachRow(found, []any{&key, &n}, func() error {
		if rows++; n <= last[key] {
			inversions++
		}
		last[key] = max(n, last[key])
		return nil
	})
	p.must(err)
	return rows, inversions
}

// write runs writers at once. Each of their transactions draws a row for a key by put, waits, reads
// the key's counter under a lock of its own, and so knows the order of commits.
func (p *postgres) write(writers, each int, put func(context.Context, pgx.Tx, string, int) error) {
	p.t.Helper()
	p.exec("create table counter (key text primary key, n int not null)")
	for k := range 3 {
		p.exec("insert into counter values ($1, 0)", fmt.Sprint("k", k))
	}
	var group sync.WaitGroup
	for w := range writers {
		random := rand.New(rand.NewPCG(uint64(w), 1))
		group.Go(func() {
			for range each {
				key := fmt.Sprint("k", random.IntN(3))
				err := pgx.BeginFunc(p.t.Context(), p.pool, func(tx pgx.Tx) error {
					return put(p.t.Context(), tx, key, random.IntN(3))
				})
				if err != nil {
					p.t.Error(err)
				}
			}
		})
	}
	group.Wait()
}

// numbered draws the key's next number. The lock of the counter's row is held until the commit.
func numbered(ctx context.Context, tx pgx.Tx, key string) (n int, err error) {
	err = tx.QueryRow(ctx, "update counter set n = n + 1 where key = $1 returning n", key).Scan(&n)
	return n, err
}

// Writers that only insert keep the order of each key: by Insert, by the function and by the
// trigger. Without them ids and commits of a key are in different orders, which is the control.
func TestOrderOfWriters(t *testing.T) {
	t.Parallel()
	table := outbox.Table{}
	sleep := func(ctx context.Context, tx pgx.Tx, ms int) error {
		_, err := tx.Exec(ctx, "select pg_sleep($1::float / 1000)", ms)
		return err
	}
	for name, c := range map[string]struct {
		trigger bool
		put     func(ctx context.Context, tx pgx.Tx, key string, ms int) error
		ordered bool
	}{
		"Insert": {false, func(ctx context.Context, tx pgx.Tx, key string, ms int) error {
			err := table.Insert(ctx, outbox.PGX(tx), outbox.Row{Key: key, Data: []byte(`{"n":0}`)})
			return firstError(err, sleep(ctx, tx, ms))
		}, true},
		"function": {false, func(ctx context.Context, tx pgx.Tx, key string, ms int) error {
			_, err := tx.Exec(ctx, `select `+table.Function()+`($1, '{"n":0}')`, key)
			return firstError(err, sleep(ctx, tx, ms))
		}, true},
		"trigger": {true, plainInsert(sleep), true},
		"control": {false, plainInsert(sleep), false},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPostgres(t, table)
			if c.trigger {
				text, err := table.Trigger()
				p.must(err)
				p.exec(text)
			}
			// The key's number is drawn behind the row, at the end of its transaction: so the
			// numbers are in the order of the commits.
			p.write(8, 60, func(ctx context.Context, tx pgx.Tx, key string, ms int) error {
				if err := c.put(ctx, tx, key, ms); err != nil {
					return err
				}
				n, err := numbered(ctx, tx, key)
				if err != nil {
					return err
				}
				_, err = tx.Exec(ctx, `update outbox set record_data = jsonb_build_object('n', $1::int)
					where id = currval(pg_get_serial_sequence('outbox', 'id'))`, n)
				return err
			})
			rows, inversions := p.inversions()
			if rows != 480 || c.ordered != (inversions == 0) {
				t.Errorf("%d rows, %d inversions; ordered: %v", rows, inversions, c.ordered)
			}
		})
	}
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func plainInsert(
	sleep func(context.Context, pgx.Tx, int) error,
) func(context.Context, pgx.Tx, string, int) error {
	return func(ctx context.Context, tx pgx.Tx, key string, ms int) error {
		_, err := tx.Exec(ctx,
			`insert into outbox (partition_key, record_data) values ($1, '{"n":0}')`, key)
		return firstError(err, sleep(ctx, tx, ms))
	}
}

// Transactions that insert rows of the same keys in different orders do not deadlock.
func TestNoDeadlock(t *testing.T) {
	p := newPostgres(t, outbox.Table{})
	var group sync.WaitGroup
	for w := range 8 {
		random := rand.New(rand.NewPCG(uint64(w), 2))
		group.Go(func() {
			for range 40 {
				var rows []outbox.Row
				for _, k := range random.Perm(6) {
					rows = append(rows, outbox.Row{Key: fmt.Sprint("k", k), Data: []byte(`{"n":0}`)})
				}
				err := pgx.BeginFunc(t.Context(), p.pool, func(tx pgx.Tx) error {
					return outbox.Table{}.Insert(t.Context(), outbox.PGX(tx), rows...)
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
}

// Rows of each type of data come out as they were put, by pgx and by database/sql.
func TestDataTypes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		of   outbox.DataType
		data string
	}{
		{outbox.JSONB, `{"a": 1}`},
		{outbox.JSON, `{"a":  1}`},
		{outbox.Text, "any 'text' ☃"},
		{outbox.Bytea, "\x00\xff"},
	} {
		t.Run(string(c.of), func(t *testing.T) {
			table := outbox.Table{Name: "app.events", Type: c.of}
			p := &postgres{t: t, url: pgtest.New(t).URL}
			var err error
			p.pool, err = pgxpool.New(t.Context(), p.url)
			p.must(err)
			defer p.pool.Close()
			p.exec("create schema app")
			statements, err := table.Schema(outbox.DialectPostgres)
			p.must(err)
			for _, text := range statements {
				p.exec(text)
			}
			db, err := sql.Open("pgx", p.url)
			p.must(err)
			defer db.Close()
			rows := []outbox.Row{
				{Key: "a", Data: []byte(c.data)}, {Key: "b", HashKey: "17", Data: []byte(c.data)},
			}
			p.must(pgx.BeginFunc(t.Context(), p.pool, func(tx pgx.Tx) error {
				return table.Insert(t.Context(), outbox.PGX(tx), rows...)
			}))
			tx, err := db.BeginTx(t.Context(), nil)
			p.must(err)
			p.must(table.Insert(t.Context(), outbox.SQL(tx, outbox.DialectPostgres), rows...))
			p.must(tx.Commit())
			p.wantRows(table, c.data)
		})
	}
}

func (p *postgres) wantRows(table outbox.Table, data string) {
	p.t.Helper()
	column := "convert_to(record_data::text, 'UTF8')"
	if table.Type == outbox.Bytea {
		column = "record_data"
	}
	found, err := p.pool.Query(p.t.Context(), "select partition_key, "+column+", "+
		"coalesce(explicit_hash_key, '') from app.events order by id")
	p.must(err)
	var got []string
	var key, hash string
	var bytes []byte
	_, err = pgx.ForEachRow(found, []any{&key, &bytes, &hash}, func() error {
		got = append(got, key+hash+string(bytes))
		return nil
	})
	p.must(err)
	want := []string{"a" + data, "b17" + data, "a" + data, "b17" + data}
	if !slices.Equal(got, want) {
		p.t.Errorf("%q, want %q", got, want)
	}
}

// SQLite has the same table, and needs no locks.
func TestSQLite(t *testing.T) {
	db, err := sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "app.db")+
		"?_txlock=immediate&_pragma=journal_mode(wal)&_pragma=synchronous(full)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, of := range []outbox.DataType{outbox.JSONB, outbox.Bytea} {
		table := outbox.Table{Name: "box_" + string(of), Type: of}
		statements, err := table.Schema(outbox.DialectSQLite)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range slices.Concat(statements, statements) {
			if _, err := db.ExecContext(t.Context(), text); err != nil {
				t.Fatalf("%s: %v", text, err)
			}
		}
		tx, err := db.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		data := `{"a":1}`
		if of == outbox.Bytea {
			data = "\x00\xff"
		}
		rows := []outbox.Row{
			{Key: "a", Data: []byte(data)}, {Key: "b", HashKey: "17", Data: []byte(data)},
		}
		if err := table.Insert(t.Context(), outbox.SQL(tx, outbox.DialectSQLite), rows...); err != nil {
			t.Fatal(err)
		}
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		var key, got, hash string
		err = db.QueryRowContext(t.Context(), "select partition_key, record_data, explicit_hash_key "+
			"from box_"+string(of)+" where id = 2").Scan(&key, &got, &hash)
		if err != nil || key != "b" || got != data || hash != "17" {
			t.Errorf("%s: %q %q %q, %v", of, key, got, hash, err)
		}
	}
}

// Rows and names that cannot be are refused before a statement.
func TestBadRows(t *testing.T) {
	none := outbox.Table{HashKey: outbox.NoColumn}
	row := outbox.Row{Key: "a"}
	for want, c := range map[string]struct {
		table outbox.Table
		row   outbox.Row
	}{
		"the partition key is empty": {outbox.Table{}, outbox.Row{Data: []byte("{}")}},
		"has 257 characters":         {outbox.Table{}, outbox.Row{Key: strings.Repeat("ü", 257)}},
		"want UTF-8 without zeros":   {outbox.Table{}, outbox.Row{Key: "a\x00"}},
		"has no column for it":       {none, outbox.Row{Key: "a", HashKey: "1"}},
		"not a hash key":             {outbox.Table{}, outbox.Row{Key: "a", HashKey: "abc"}},
		`Name is "a\"b"`:             {outbox.Table{Name: `a"b`}, row},
		`Name is "b.c"`:              {outbox.Table{Name: "a.b.c"}, row},
		"SQLite has no schemas":      {outbox.Table{Name: "a.b"}, row},
		"want a name of at most 40":  {outbox.Table{ID: strings.Repeat("x", 41)}, row},
		`Type is "xml": want jsonb`:  {outbox.Table{Type: "xml"}, row},
	} {
		err := c.table.Insert(t.Context(), outbox.SQL(nil, outbox.DialectSQLite), c.row)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in: %v", want, err)
		}
	}
	if err := (outbox.Table{}).Insert(t.Context(), outbox.SQL(nil, "x"), row); err == nil {
		t.Error("an unknown dialect was taken")
	}
	var many []outbox.Row
	for n := range 1001 {
		many = append(many, outbox.Row{Key: fmt.Sprint(n)})
	}
	tx := outbox.SQL(nil, outbox.DialectPostgres)
	if err := (outbox.Table{}).Insert(t.Context(), tx, many...); err == nil ||
		!strings.Contains(err.Error(), "1001 keys") {
		t.Errorf("many keys: %v", err)
	}
	if err := (outbox.Table{}).Insert(t.Context(), tx); err != nil {
		t.Errorf("no row: %v", err)
	}
}
