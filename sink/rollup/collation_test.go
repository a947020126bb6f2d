package rollup_test

import (
	"database/sql"
	"errors"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/sink/rollup"
)

// texts has each use of a text: key, smallest, largest and last value.
var texts = rollup.Definition{
	Keys: []rollup.Field{{Pointer: "/k"}}, Time: "/at",
	Columns: []rollup.Column{
		{Op: rollup.Min, Field: rollup.Field{Pointer: "/t", Type: rollup.Text}},
		{Op: rollup.Max, Field: rollup.Field{Pointer: "/t", Type: rollup.Text}},
		{Op: rollup.Last, Field: rollup.Field{Pointer: "/t"}},
	},
}

// TestCollationOfTable makes a table whose texts compare by their bytes, in any database.
func TestCollationOfTable(t *testing.T) {
	d := onPostgres(t)
	prepared(t, d.config("edits", texts))
	got := d.table(t, "select a.attname, c.collname from pg_attribute a join pg_collation c "+
		"on c.oid = a.attcollation where a.attrelid = 'edits'::regclass order by a.attnum")
	want := []string{"k|C", "min_t|C", "max_t|C", "last_t|C", "last_order|C"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the collations are %q, want %q", got, want)
	}
}

// TestTableOfOtherCollation has a table that another made, and a collation with a before B. The
// rows are those of bytes: B before a.
func TestTableOfOtherCollation(t *testing.T) {
	each(t, func(t *testing.T, d *database) {
		text, end := "text collate nocase not null", " strict"
		if d.kind == rollup.Postgres {
			text, end = "text collate "+d.otherCollation(t)+" not null", ""
		}
		d.exec(t, "create table edits (k text not null primary key, min_t "+text+", max_t "+text+
			", last_t "+text+", last_order "+text+")"+end)
		r := prepared(t, d.config("edits", texts))
		// Of equal times the shard decides which record is the last.
		upper := recordsOf("shardId-B", `{"k": "x", "at": 1700000000, "t": "B"}`,
			`{"k": "y", "at": 1700000000, "t": "B"}`)
		lower := recordsOf("shardId-a", `{"k": "x", "at": 1700000000, "t": "a"}`,
			`{"k": "y", "at": 1700000000, "t": "a"}`)
		for _, records := range [][]runnel.Record{upper[:1], lower[:1], lower[1:], upper[1:]} {
			writeOne(t, r, records)
		}
		got := d.table(t, "select k, min_t, max_t, last_t from edits order by k")
		if want := []string{"x|B|a|a", "y|B|a|a"}; !reflect.DeepEqual(got, want) {
			t.Errorf("the rows are %q, want %q", got, want)
		}
	})
}

// TestSQLiteOfUTF16 refuses a database whose bytes have another order than those of the folds.
func TestSQLiteOfUTF16(t *testing.T) {
	t.Parallel()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "test.db"))
	must(t, err)
	t.Cleanup(func() { _ = db.Close() })
	db.SetMaxOpenConns(1)
	d := &database{rollup.SQLite, db}
	d.exec(t, "pragma encoding = 'UTF-16le'")
	d.exec(t, "create table other (a text)")
	r, err := rollup.New(d.config("edits", texts))
	must(t, err)
	err = r.Prepare(t.Context())
	unfit := new(rollup.UnfitError)
	if !errors.As(err, &unfit) || !strings.Contains(err.Error(), "UTF-16le") {
		t.Errorf("got %v, want an UnfitError", err)
	}
}

// otherCollation returns a collation in which a is before B. It depends on what the server was built
// with and on the languages of the system.
func (d *database) otherCollation(t *testing.T) string {
	t.Helper()
	for _, name := range d.table(t, "select quote_ident(collname) from pg_collation where "+
		"collisdeterministic and collencoding in (-1, pg_char_to_encoding('UTF8')) "+
		"and collname <> 'default' order by collname") {
		var before bool
		err := d.db.QueryRowContext(t.Context(),
			"select 'a' < 'B' collate "+name).Scan(&before)
		if err == nil && before {
			return name
		}
	}
	t.Skip("the server compares by bytes alone: it has no ICU, and its system no language")
	return ""
}
