package rollup_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"net/url"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
	"golang.org/x/sync/errgroup"
	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/pgtest"
	"github.com/runnel-stream/runnel/sink"
	"github.com/runnel-stream/runnel/sink/rollup"
)

// database is a database of one kind.
type database struct {
	kind rollup.Dialect
	db   *sql.DB
}

// each runs a test on each kind of database.
func each(t *testing.T, test func(t *testing.T, d *database)) {
	t.Parallel()
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		db, err := sql.Open("pgx", pgtest.New(t).URL)
		must(t, err)
		t.Cleanup(func() { _ = db.Close() })
		test(t, &database{rollup.Postgres, db})
	})
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		at := url.URL{Scheme: "file", Opaque: filepath.Join(t.TempDir(), "test.db")}
		at.RawQuery = url.Values{"_pragma": {
			"busy_timeout(10000)", "journal_mode(wal)", "synchronous(off)",
		}}.Encode()
		db, err := sql.Open("sqlite", at.String())
		must(t, err)
		t.Cleanup(func() { _ = db.Close() })
		test(t, &database{rollup.SQLite, db})
	})
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (d *database) config(table string, of rollup.Definition) rollup.Config {
	return rollup.Config{
		Definition: of, DB: d.db, Dialect: d.kind, Table: table, App: "app-" + table,
		Stream: "edits", Logger: slog.New(slog.DiscardHandler),
	}
}

func prepared(t *testing.T, cfg rollup.Config) *rollup.Rollup {
	t.Helper()
	r, err := rollup.New(cfg)
	must(t, err)
	must(t, r.Prepare(t.Context()))
	return r
}

// records makes the records of one shard.
func recordsOf(shard runnel.ShardID, data ...string) []runnel.Record {
	records := make([]runnel.Record, len(data))
	for i, text := range data {
		records[i] = runnel.Record{
			PartitionKey: "key", Data: []byte(text), ShardID: shard,
			Position:    runnel.Position{Sequence: runnel.SequenceNumber(fmt.Sprint(1000 + i))},
			ArrivalTime: time.UnixMilli(1_700_000_000_000 + int64(i)).UTC(),
		}
	}
	return records
}

// write writes records in batches that are cut at random.
func write(t *testing.T, r *rollup.Rollup, rng *rand.Rand, records []runnel.Record) {
	t.Helper()
	w, err := r.Open(t.Context(), sink.Shard{
		Stream: "edits", Created: time.UnixMilli(1_700_000_000_000), ID: records[0].ShardID,
	})
	if err != nil {
		t.Error(err)
		return
	}
	for len(records) > 0 {
		n := min(len(records), 1+rng.IntN(40))
		_, err := w.Write(t.Context(), sink.Batch{
			Records: records[:n], Through: records[n-1].Position,
		})
		if err != nil {
			t.Error(err)
			return
		}
		records = records[n:]
	}
}

// table reads the table's rows as texts, in the order of the columns.
func (d *database) table(t testing.TB, query string) (rows []string) {
	t.Helper()
	found, err := d.db.QueryContext(t.Context(), query)
	must(t, err)
	defer found.Close()
	columns, err := found.Columns()
	must(t, err)
	for found.Next() {
		cells := make([]any, len(columns))
		for i := range cells {
			cells[i] = new(any)
		}
		must(t, found.Scan(cells...))
		var texts []string
		for _, cell := range cells {
			switch v := (*cell.(*any)).(type) {
			case time.Time:
				texts = append(texts, v.UTC().Format(timeText))
			case []byte:
				texts = append(texts, string(v))
			default:
				texts = append(texts, fmt.Sprint(v))
			}
		}
		rows = append(rows, strings.Join(texts, "|"))
	}
	must(t, found.Err())
	return rows
}

const timeText = "2006-01-02T15:04:05.000Z"

// all is a definition with each operation and type.
var all = rollup.Definition{
	Keys:   []rollup.Field{{Pointer: "/k"}, {Name: "number", Pointer: "/n", Type: rollup.Int}},
	Bucket: time.Minute, Time: "/at",
	Columns: []rollup.Column{
		{Op: rollup.Count},
		{Op: rollup.Sum, Field: rollup.Field{Pointer: "/v", Type: rollup.Int}},
		{Op: rollup.Min, Field: rollup.Field{Pointer: "/v", Type: rollup.Int}},
		{Op: rollup.Max, Field: rollup.Field{Pointer: "/d"}},
		{Op: rollup.Min, Field: rollup.Field{Pointer: "/t", Type: rollup.Text}},
		{Op: rollup.Max, Field: rollup.Field{Pointer: "/t", Type: rollup.Text}},
		{Op: rollup.Last, Field: rollup.Field{Pointer: "/t"}},
		{Op: rollup.Last, Field: rollup.Field{Pointer: "/v", Type: rollup.Int}},
	},
}

const allQuery = "select k, number, bucket, count, sum_v, min_v, max_d, min_t, max_t, last_t, " +
	"last_v, last_order from edits order by n_order(k), number, bucket"

// hostile are texts that a careless statement would not survive.
var hostile = []string{
	"a", "B", "Z", "ä", "é", "", " ", "NULL", "null", `"`, `\`, `\"`, "{}", "{a,b}", ",", "'", "''",
	"\n", "\t", "😀", "a b", `\\x00`, "0", "-", "~",
}

func jsonText(text string) string {
	b, _ := json.Marshal(text) // strings always marshal
	return string(b)
}

func drawn(rng *rand.Rand, shard runnel.ShardID, n int) []runnel.Record {
	data := make([]string, n)
	for i := range data {
		text := hostile[rng.IntN(len(hostile))]
		data[i] = fmt.Sprintf(`{"k": %s, "n": %d, "at": %d, "v": %d, "d": %g, "t": %s}`,
			jsonText(hostile[rng.IntN(len(hostile))]), rng.IntN(2), 1_700_000_000+rng.IntN(120),
			rng.IntN(2000)-1000, float64(rng.IntN(1_000_000))/7, jsonText(text))
	}
	return recordsOf(shard, data...)
}

// wantRows returns the rows of a fold of all records, as texts.
func wantRows(t *testing.T, of rollup.Definition, records ...[]runnel.Record) (texts []string) {
	t.Helper()
	folder, err := rollup.NewFolder(of)
	must(t, err)
	for _, part := range records {
		for i := range part {
			must(t, folder.Add(&part[i]))
		}
	}
	for _, row := range folder.Rows() {
		var cells []string
		for i, v := range row.Keys {
			cells = append(cells, valueText(v, of.Keys[i].Type))
		}
		cells = append(cells, row.Bucket.Format(timeText))
		for i, v := range row.Values {
			cells = append(cells, valueText(v, of.Columns[i].Type))
		}
		texts = append(texts, strings.Join(append(cells, row.Order.String()), "|"))
	}
	return texts
}

func valueText(v rollup.Value, of rollup.Type) string {
	switch of {
	case rollup.Int:
		return fmt.Sprint(v.Int)
	case rollup.Double:
		return fmt.Sprint(v.Double)
	default:
		return v.Text
	}
}

// orderBy replaces n_order by an order of bytes.
func (d *database) orderBy(query string) string {
	if d.kind == rollup.SQLite {
		return strings.ReplaceAll(query, "n_order(k)", "k")
	}
	return strings.ReplaceAll(query, "n_order(k)", `k collate "C"`)
}

// TestTable has three shards feed the same rows at once. The table is that of one fold.
func TestTable(t *testing.T) {
	each(t, func(t *testing.T, d *database) {
		r := prepared(t, d.config("edits", all))
		must(t, r.Prepare(t.Context())) // it changes nothing
		var parts [][]runnel.Record
		var group sync.WaitGroup
		for n := range 3 {
			rng := rand.New(rand.NewPCG(uint64(n), 1))
			records := drawn(rng, runnel.ShardID(fmt.Sprintf("shardId-%012d", n)), 1500)
			parts = append(parts, records)
			group.Go(func() { write(t, r, rng, records) })
		}
		group.Wait()
		got := d.table(t, d.orderBy(allQuery))
		if want := wantRows(t, all.WithDefaults(), parts...); !reflect.DeepEqual(got, want) {
			t.Errorf("%d rows, want %d", len(got), len(want))
			for i := range min(len(got), len(want)) {
				if got[i] != want[i] {
					t.Fatalf("got  %q\nwant %q", got[i], want[i])
				}
			}
		}
	})
}

// TestOwnColumn merges by a function of the test: the bits of a number, from three shards.
func TestOwnColumn(t *testing.T) {
	each(t, func(t *testing.T, d *database) {
		of := all
		of.Columns = append([]rollup.Column{{
			Op: rollup.Own, Field: rollup.Field{Name: "bits", Type: rollup.Int},
			Of: func(r *runnel.Record) (rollup.Value, error) {
				return rollup.Value{Int: int64(len(r.Data))}, nil
			},
			Merge: func(a, b rollup.Value) (rollup.Value, error) {
				return rollup.Value{Int: a.Int | b.Int}, nil
			},
		}}, all.Columns...)
		r := prepared(t, d.config("edits", of))
		var parts [][]runnel.Record
		var group sync.WaitGroup
		for n := range 3 {
			rng := rand.New(rand.NewPCG(uint64(n), 1))
			records := drawn(rng, runnel.ShardID(fmt.Sprintf("shardId-%012d", n)), 600)
			parts = append(parts, records)
			group.Go(func() { write(t, r, rng, records) })
		}
		group.Wait()
		got := d.table(t, d.orderBy(strings.Replace(allQuery, "count,", "bits, count,", 1)))
		if want := wantRows(t, of.WithDefaults(), parts...); !reflect.DeepEqual(got, want) {
			t.Errorf("%d rows\n%q\nwant %d\n%q", len(got), got[0], len(want), want[0])
		}
	})
}

func count(of ...rollup.Column) rollup.Definition {
	return rollup.Definition{
		Keys:    []rollup.Field{{Pointer: "/k"}},
		Columns: append([]rollup.Column{{Op: rollup.Count}}, of...),
	}
}

// TestBadRecords keeps the records that cannot be folded, with their reasons, once each.
func TestBadRecords(t *testing.T) {
	each(t, func(t *testing.T, d *database) {
		cfg := d.config("edits", count())
		var commits []rollup.Commit
		cfg.OnCommit = func(c rollup.Commit) { commits = append(commits, c) }
		r := prepared(t, cfg)
		records := recordsOf("shardId-000000000000", `{"k": "a"}`, "no JSON \x00\xff", `{"k": null}`, `{}`,
			`{"k": "a"}`)
		records[1].PartitionKey = "with \x00 NUL"
		w, err := r.Open(t.Context(), sink.Shard{
			Stream: "edits", Created: time.UnixMilli(1_700_000_000_000), ID: "shardId-000000000000",
		})
		must(t, err)
		_, err = w.Write(t.Context(), sink.Batch{Records: records, Through: records[4].Position})
		must(t, err)
		if got := d.table(t, "select k, count from edits"); !reflect.DeepEqual(got, []string{"a|2"}) {
			t.Errorf("the rows are %q", got)
		}
		want := []string{
			"edits|shardId-000000000000|" + records[1].Position.SortText() +
				"|it is not JSON in UTF-8|with \ufffd NUL|no JSON \x00\xff",
			"edits|shardId-000000000000|" + records[2].Position.SortText() + `|/k is null|key|{"k": null}`,
			"edits|shardId-000000000000|" + records[3].Position.SortText() + `|it has no /k|key|{}`,
		}
		got := d.table(t, "select stream, shard, position, reason, partition_key, data "+
			"from edits_bad order by position")
		if !reflect.DeepEqual(got, want) {
			t.Errorf("the bad ones are\n%q, want\n%q", got, want)
		}
		if len(commits) != 1 || commits[0].Records != 5 || commits[0].Bad != 3 || commits[0].Rows != 1 {
			t.Errorf("the commits are %+v", commits)
		}
	})
}

// TestStopAtBad stops the shard at a bad record, and nothing of its batch is committed.
func TestStopAtBad(t *testing.T) {
	each(t, func(t *testing.T, d *database) {
		cfg := d.config("edits", count())
		cfg.Bad = rollup.StopAtBad
		r := prepared(t, cfg)
		stopping := make(chan struct{})
		close(stopping)
		records := recordsOf("shardId-000000000000", `{"k": "a"}`, "no JSON")
		w, err := r.Open(t.Context(), sink.Shard{
			Stream: "edits", Created: time.UnixMilli(1_700_000_000_000), ID: "shardId-000000000000",
		})
		must(t, err)
		_, err = w.Write(sink.WithStopping(t.Context(), stopping), sink.Batch{
			Records: records, Through: records[1].Position,
		})
		bad := new(rollup.BadRecordError)
		if !errors.As(err, &bad) || bad.Position != records[1].Position {
			t.Errorf("got %v, want a BadRecordError", err)
		}
		if got := d.table(t, "select k from edits"); len(got) > 0 {
			t.Errorf("the rows are %q", got)
		}
	})
}

// TestOverflow merges records until a sum leaves its range: the record that does is bad, and those
// behind it count.
func TestOverflow(t *testing.T) {
	each(t, func(t *testing.T, d *database) {
		r := prepared(t, d.config("edits", count(
			rollup.Column{Op: rollup.Sum, Field: rollup.Field{Pointer: "/v", Type: rollup.Int}},
			rollup.Column{Op: rollup.Sum, Field: rollup.Field{Name: "wide", Pointer: "/d"}},
		)))
		most, large := fmt.Sprint(math.MaxInt64-10), fmt.Sprint(math.MaxFloat64)
		record := func(key, v, d string) string {
			return fmt.Sprintf(`{"k": %q, "v": %s, "d": %s}`, key, v, d)
		}
		records := recordsOf("shardId-000000000000",
			record("a", most, "0"), record("b", "1", large), record("c", "1", "1"),
			record("a", "11", "0"), record("b", "1", large), record("c", "1", "1"), record("a", "10", "0"),
		)
		w, err := r.Open(t.Context(), sink.Shard{
			Stream: "edits", Created: time.UnixMilli(1_700_000_000_000), ID: "shardId-000000000000",
		})
		must(t, err)
		for _, cut := range [][2]int{{0, 3}, {3, 7}} {
			_, err = w.Write(t.Context(), sink.Batch{
				Records: records[cut[0]:cut[1]], Through: records[cut[1]-1].Position,
			})
			must(t, err)
		}
		want := []string{
			fmt.Sprintf("a|2|%d|0", math.MaxInt64), fmt.Sprintf("b|1|1|%v", math.MaxFloat64), "c|2|2|2",
		}
		got := d.table(t, "select k, count, sum_v, wide from edits order by k")
		if !reflect.DeepEqual(got, want) {
			t.Errorf("the rows are %q, want %q", got, want)
		}
		bad := d.table(t, "select position, reason from edits_bad order by position")
		if len(bad) != 2 || !strings.Contains(bad[0], "sum_v") || !strings.Contains(bad[1], "wide") {
			t.Errorf("the bad ones are %q", bad)
		}
	})
}

// TestRefused names both sides of each mismatch, and changes nothing.
func TestRefused(t *testing.T) {
	each(t, func(t *testing.T, d *database) {
		base := d.config("edits", count())
		r := prepared(t, base)
		write(t, r, rand.New(rand.NewPCG(1, 1)), recordsOf("shardId-000000000000", `{"k": "a"}`))
		exec := func(text string) {
			t.Helper()
			_, err := d.db.ExecContext(t.Context(), text)
			must(t, err)
		}
		exec("create table alien (k text primary key, count bigint not null, must text not null)")
		exec("create table few (k text)")
		exec("create view seen as select * from few")
		for name, c := range map[string]struct {
			change func(*rollup.Config)
			words  []string
		}{
			"another application": {
				func(c *rollup.Config) { c.App = "other" }, []string{"app-edits", "other", "again"},
			},
			"another table": {
				func(c *rollup.Config) { c.Table = "more" }, []string{"edits", "more", "middle"},
			},
			"another stream": {
				func(c *rollup.Config) { c.Stream = "views" }, []string{"edits", "views"},
			},
			"another definition": {
				func(c *rollup.Config) { c.Bucket = time.Hour }, []string{`"bucket":"1h0m0s"`, `[{"name":"k"`},
			},
			"a column without a default": {
				func(c *rollup.Config) { c.App, c.Table = "other", "alien" }, []string{"column must has no default"},
			},
			"too few columns": {
				func(c *rollup.Config) { c.App, c.Table = "other", "few" },
				[]string{"no column count", "no unique index on k"},
			},
			"a view": {
				func(c *rollup.Config) { c.App, c.Table = "other", "seen" }, []string{"seen is there and is no table"},
			},
		} {
			cfg := base
			c.change(&cfg)
			r, err := rollup.New(cfg)
			must(t, err)
			err = r.Prepare(t.Context())
			if unfit := new(rollup.UnfitError); !errors.As(err, &unfit) {
				t.Errorf("%s: %v, want an UnfitError", name, err)
			}
			for _, word := range c.words {
				if err != nil && !strings.Contains(err.Error(), word) {
					t.Errorf("%s: %q is not in %v", name, word, err)
				}
			}
		}
		if got := d.table(t, "select k, count from edits"); !reflect.DeepEqual(got, []string{"a|1"}) {
			t.Errorf("the rows are %q", got)
		}
		if got := d.table(t, "select table_name from runnel_rollup"); len(got) != 1 {
			t.Errorf("the rollups are %q", got)
		}
		exec("drop table edits")
		r, err := rollup.New(base)
		must(t, err)
		if err := r.Prepare(t.Context()); err == nil || !strings.Contains(err.Error(), "not there") {
			t.Errorf("after the table was dropped: %v", err)
		}
	})
}

// TestTableOfAnother fills a table that is there already and fits.
func TestTableOfAnother(t *testing.T) {
	each(t, func(t *testing.T, d *database) {
		_, err := d.db.ExecContext(t.Context(), `create table "Edits of All" `+
			`(note text default 'x', count bigint not null, sum_v bigint, k text not null, unique (k))`)
		must(t, err)
		cfg := d.config("Edits of All", count())
		r := prepared(t, cfg)
		write(t, r, rand.New(rand.NewPCG(1, 1)),
			recordsOf("shardId-000000000000", `{"k": "a"}`, `{"k": "a"}`))
		got := d.table(t, `select k, count, note from "Edits of All"`)
		if !reflect.DeepEqual(got, []string{"a|2|x"}) {
			t.Errorf("the rows are %q", got)
		}
	})
}

// TestNullableKey refuses a table whose key may be null, and names the fix. After the fix the table
// fits. A primary key fits as it is, though SQLite lets its columns be null.
func TestNullableKey(t *testing.T) {
	each(t, func(t *testing.T, d *database) {
		exec := func(text string) {
			t.Helper()
			_, err := d.db.ExecContext(t.Context(), text)
			must(t, err)
		}
		prepare := func(table string) error {
			r, err := rollup.New(d.config(table, count()))
			must(t, err)
			return r.Prepare(t.Context())
		}
		exec("create table own (k text primary key, count bigint not null)")
		must(t, prepare("own"))
		exec("create table loose (k text unique, count bigint not null)")
		fix := `alter table "loose" alter column "k" set not null`
		words := fix
		if d.kind == rollup.SQLite {
			words = `make the table anew with "k" text not null`
		}
		err := prepare("loose")
		if unfit := new(rollup.UnfitError); !errors.As(err, &unfit) ||
			!strings.Contains(err.Error(), "column k may be null") ||
			!strings.Contains(err.Error(), words) {
			t.Fatalf("got %v, want %q", err, words)
		}
		if d.kind == rollup.SQLite {
			exec("drop table loose")
			fix = "create table loose (k text not null unique, count bigint not null)"
		}
		exec(fix)
		must(t, prepare("loose"))
	})
}

// TestRoleOfTheWorker prepares and fills a table by a role that may change rows and make nothing.
func TestRoleOfTheWorker(t *testing.T) {
	t.Parallel()
	server := pgtest.New(t)
	owner, err := sql.Open("pgx", server.URL)
	must(t, err)
	t.Cleanup(func() { _ = owner.Close() })
	of := &database{rollup.Postgres, owner}
	prepared(t, of.config("edits", count()))
	for _, text := range []string{
		"revoke create on schema public from public", "create role worker login",
		"grant select, insert, update on all tables in schema public to worker",
	} {
		_, err := owner.ExecContext(t.Context(), text)
		must(t, err)
	}
	db, err := sql.Open("pgx", strings.Replace(server.URL, "postgres@", "worker@", 1))
	must(t, err)
	t.Cleanup(func() { _ = db.Close() })
	r := prepared(t, (&database{rollup.Postgres, db}).config("edits", count()))
	write(t, r, rand.New(rand.NewPCG(1, 1)), recordsOf("shardId-000000000000", `{"k": "a"}`, "no"))
	if got := of.table(t, "select k, count from edits"); !reflect.DeepEqual(got, []string{"a|1"}) {
		t.Errorf("the rows are %q", got)
	}
}

// TestPrepareAtOnce prepares one table from several connections.
func TestPrepareAtOnce(t *testing.T) {
	each(t, func(t *testing.T, d *database) {
		var group sync.WaitGroup
		for range 6 {
			r, err := rollup.New(d.config("edits", count()))
			must(t, err)
			group.Go(func() {
				if err := r.Prepare(context.WithoutCancel(t.Context())); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
	})
}

// TestPrepareOfTwoTables begins two tables under one application at once: one of them is refused,
// also where the database's own level of isolation is a snapshot.
func TestPrepareOfTwoTables(t *testing.T) {
	each(t, func(t *testing.T, d *database) {
		if d.kind == rollup.Postgres {
			_, err := d.db.ExecContext(t.Context(),
				"alter database postgres set default_transaction_isolation = 'repeatable read'")
			must(t, err)
			d.db.SetMaxIdleConns(0) // the connections so far have the old one
		}
		for i := range 10 {
			var group errgroup.Group
			for n := range 2 {
				cfg := d.config(fmt.Sprintf("edits_%d_%d", i, n), count())
				cfg.App = fmt.Sprint("app-", i)
				r, err := rollup.New(cfg)
				must(t, err)
				group.Go(func() error { return r.Prepare(context.WithoutCancel(t.Context())) })
			}
			err := group.Wait()
			if unfit := new(rollup.UnfitError); !errors.As(err, &unfit) {
				t.Errorf("got %v, want the refusal of one table", err)
			}
		}
	})
}

// writeBatches writes batches of a shard as they are.
func writeBatches(t *testing.T, r *rollup.Rollup, batches ...[]string) {
	t.Helper()
	w, err := r.Open(t.Context(), sink.Shard{
		Stream: "edits", Created: time.UnixMilli(1_700_000_000_000), ID: "shardId-000000000000",
	})
	must(t, err)
	n := 0
	for _, data := range batches {
		records := recordsOf("shardId-000000000000", data...)
		for i := range records {
			records[i].Position.Sequence = runnel.SequenceNumber(fmt.Sprint(1000 + n))
			n++
		}
		_, err := w.Write(t.Context(), sink.Batch{
			Records: records, Through: records[len(records)-1].Position,
		})
		must(t, err)
	}
}

func sumOf(pointer string, of rollup.Type) rollup.Definition {
	return count(rollup.Column{Op: rollup.Sum, Field: rollup.Field{Pointer: pointer, Type: of}})
}

// TestOverflowsOnce has records that overflow the folded batch, or the row, or neither: each is
// counted or bad, not both.
func TestOverflowsOnce(t *testing.T) {
	each(t, func(t *testing.T, d *database) {
		r := prepared(t, d.config("edits", sumOf("/v", rollup.Int)))
		most := fmt.Sprintf(`{"k": "a", "v": %d}`, math.MaxInt64)
		writeBatches(t, r, []string{`{"k": "a", "v": 10}`}, []string{most, `{"k": "a", "v": 1}`},
			[]string{`{"k": "b", "v": -10}`}, []string{
				strings.Replace(most, `"a"`, `"b"`, 1), `{"k": "b", "v": 1}`, `{"k": "b", "v": 10}`,
			})
		got := d.table(t, "select k, count, sum_v from edits order by k")
		want := []string{"a|2|11", fmt.Sprintf("b|3|%d", math.MaxInt64-9)}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("the rows are %q, want %q", got, want)
		}
		if bad := d.table(t, "select position from edits_bad order by position"); len(bad) != 2 {
			t.Errorf("the bad ones are %q, want two", bad)
		}
	})
}

// TestManyOverflows has a batch in which every record overflows its row.
func TestManyOverflows(t *testing.T) {
	each(t, func(t *testing.T, d *database) {
		r := prepared(t, d.config("edits", sumOf("/v", rollup.Int)))
		const keys = 2000
		data := make([]string, keys)
		for i := range data {
			data[i] = fmt.Sprintf(`{"k": "key-%d", "v": %d}`, i, math.MaxInt64)
		}
		writeBatches(t, r, data, slices.Concat(data, data))
		got := d.table(t, "select count(*), sum(count) from edits")
		bad := d.table(t, "select count(*) from edits_bad")
		if got[0] != "2000|2000" || bad[0] != "4000" {
			t.Errorf("rows and records are %q, bad ones %q", got, bad)
		}
	})
}

// TestInfinity adds doubles beyond their range over several batches: SQLite has infinities.
func TestInfinity(t *testing.T) {
	each(t, func(t *testing.T, d *database) {
		r := prepared(t, d.config("edits", sumOf("/v", rollup.Double)))
		writeBatches(t, r, []string{`{"k": "a", "v": 1e308}`}, []string{`{"k": "a", "v": 1e308}`},
			[]string{`{"k": "b", "v": -1e308}`}, []string{`{"k": "b", "v": -1e308}`})
		got := d.table(t, "select k, count, sum_v from edits order by k")
		if !reflect.DeepEqual(got, []string{"a|1|1e+308", "b|1|-1e+308"}) {
			t.Errorf("the rows are %q", got)
		}
		if bad := d.table(t, "select position from edits_bad"); len(bad) != 2 {
			t.Errorf("the bad ones are %q, want two", bad)
		}
	})
}

// TestUnsoundTables refuses tables that would lose counts, and reports rows that a trigger drops.
func TestUnsoundTables(t *testing.T) {
	each(t, func(t *testing.T, d *database) {
		exec := func(text string) {
			t.Helper()
			_, err := d.db.ExecContext(t.Context(), text)
			must(t, err)
		}
		exec("create table nulls (k text primary key, count bigint)")
		exec("create table unordered (k text primary key, count bigint not null, " +
			"last_v text not null, last_order text)")
		exec("create table ok_bad (x text)")
		words := map[string]string{
			"nulls": "column count may be null", "unordered": "column last_order may be null", "ok": "the table \"ok_bad\" is needed",
		}
		if d.kind == rollup.SQLite {
			exec("create table folded (k text collate nocase primary key, count bigint not null)")
			words["folded"] = "no unique index on k"
		} else {
			exec("create table made (k text primary key, count bigint generated always as (1) stored)")
			words["made"] = "generated by the database"
			_, err := d.db.ExecContext(t.Context(), "create collation ci (provider = icu, "+
				"locale = 'und-u-ks-level2', deterministic = false)")
			if err == nil { // this server is built with ICU
				exec("create table folded (k text collate ci primary key, count bigint not null)")
				words["folded"] = "no unique index on k"
			}
		}
		for table, word := range words {
			of := count()
			if table == "unordered" {
				of = count(rollup.Column{Op: rollup.Last, Field: rollup.Field{Pointer: "/v"}})
			}
			r, err := rollup.New(d.config(table, of))
			must(t, err)
			err = r.Prepare(t.Context())
			if unfit := new(rollup.UnfitError); !errors.As(err, &unfit) ||
				!strings.Contains(err.Error(), word) {
				t.Errorf("%s: %v, want %q", table, err, word)
			}
		}
		r := prepared(t, d.config("edits", count()))
		if d.kind == rollup.SQLite {
			exec("create trigger dropper before insert on edits begin select raise(ignore); end")
		} else {
			exec("create rule dropper as on insert to edits do instead nothing")
		}
		w, err := r.Open(t.Context(), sink.Shard{
			Stream: "edits", Created: time.UnixMilli(1_700_000_000_000), ID: "shardId-000000000000",
		})
		must(t, err)
		stopping := make(chan struct{})
		close(stopping)
		records := recordsOf("shardId-000000000000", `{"k": "a"}`)
		_, err = w.Write(sink.WithStopping(t.Context(), stopping), sink.Batch{
			Records: records, Through: records[0].Position,
		})
		if err == nil || !strings.Contains(err.Error(), "drops rows") {
			t.Errorf("got %v", err)
		}
	})
}

// TestBadTableIsMadeAgain makes the table of bad records that was dropped.
func TestBadTableIsMadeAgain(t *testing.T) {
	each(t, func(t *testing.T, d *database) {
		d.db.SetMaxOpenConns(1) // as is usual with SQLite
		prepared(t, d.config("edits", count()))
		_, err := d.db.ExecContext(t.Context(), "drop table edits_bad")
		must(t, err)
		writeBatches(t, prepared(t, d.config("edits", count())), []string{"no JSON"})
		if bad := d.table(t, "select reason from edits_bad"); len(bad) != 1 {
			t.Errorf("the bad ones are %q", bad)
		}
	})
}

// TestOwnColumnRefuses has a user's function that refuses a record of one row, beside a new row: the
// record is bad, and each other one counts once.
func TestOwnColumnRefuses(t *testing.T) {
	each(t, func(t *testing.T, d *database) {
		of := count(rollup.Column{
			Op: rollup.Own, Field: rollup.Field{Name: "size", Type: rollup.Int},
			Of: func(r *runnel.Record) (rollup.Value, error) {
				return rollup.Value{Int: int64(len(r.Data))}, nil
			},
			Merge: func(a, b rollup.Value) (rollup.Value, error) {
				if a.Int+b.Int > 40 {
					return a, errors.New("too much")
				}
				return rollup.Value{Int: a.Int + b.Int}, nil
			},
		})
		r := prepared(t, d.config("edits", of))
		writeBatches(t, r, []string{`{"k": "a"}`}, []string{
			`{"k": "b"}`, `{"k": "a", "x": "a long record, too long"}`, `{"k": "a"}`, `{"k": "b"}`,
		})
		got := d.table(t, "select k, count, size from edits order by k")
		if !reflect.DeepEqual(got, []string{"a|2|20", "b|2|20"}) {
			t.Errorf("the rows are %q", got)
		}
		bad := d.table(t, "select reason from edits_bad")
		if len(bad) != 1 || !strings.Contains(bad[0], "too much") {
			t.Errorf("the bad ones are %q", bad)
		}
	})
}
