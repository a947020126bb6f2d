package outbox_test

import (
	"database/sql"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/runnel-stream/runnel/outbox"
)

// A check names every fault of a table.
func TestCheckPostgres(t *testing.T) {
	p := newPostgres(t, outbox.Table{})
	db := outbox.Postgres(p.pool)
	p.must(outbox.Table{}.Check(t.Context(), db))
	for _, text := range []string{
		"create table uuids (id uuid, partition_key text, record_data jsonb)",
		"create table cached (id bigint generated always as identity (cache 20), partition_key text, " +
			"record_data jsonb)",
		"create index on cached (partition_key, id)",
		"create view seen as select * from outbox",
		"create unlogged table unlogged (id bigserial primary key, partition_key text, record_data jsonb)",
		"create table kept (id bigserial primary key, partition_key text, record_data jsonb)",
		"create rule keep as on delete to kept do instead nothing",
		"create function keep() returns trigger language plpgsql as $$ begin return null; end $$",
		"create table triggered (id bigserial primary key, partition_key text, record_data jsonb)",
		"create trigger keep before delete on triggered for each row execute function keep()",
		"create table falling (id bigint generated always as identity (increment -1), partition_key " +
			"text, record_data jsonb)",
		"create table bare (id bigint, partition_key text, record_data jsonb)",
		"create table texts (id serial, partition_key int, record_data text, explicit_hash_key text)",
		// The article's table, which is sound but for its missing index.
		"create table kinesis_records (id bigserial primary key, partition_key text not null, " +
			"record_data jsonb not null)",
	} {
		p.exec(text)
	}
	for _, c := range []struct {
		table outbox.Table
		want  []string
	}{
		{outbox.Table{Name: "nowhere"}, []string{"there is no such table"}},
		{outbox.Table{Name: "no.where"}, []string{"there is no such table"}},
		{
			outbox.Table{Name: "uuids"},
			[]string{"column id is uuid: want smallint", "no column explicit_hash_key"},
		},
		{outbox.Table{Name: "seen"}, []string{"it is no table"}},
		{outbox.Table{Name: "unlogged", HashKey: outbox.NoColumn}, []string{"it is unlogged"}},
		{outbox.Table{Name: "kept", HashKey: outbox.NoColumn}, []string{"a rule on delete"}},
		{outbox.Table{Name: "triggered", HashKey: outbox.NoColumn}, []string{"a trigger before delete"}},
		{outbox.Table{Name: "cached", HashKey: outbox.NoColumn}, []string{"no unique index makes id"}},
		{outbox.Table{Name: "cached", HashKey: outbox.NoColumn}, []string{"a cache of 20"}},
		{outbox.Table{Name: "falling", HashKey: outbox.NoColumn}, []string{"want one that grows"}},
		{
			outbox.Table{Name: "bare", HashKey: outbox.NoColumn},
			[]string{"no sequence is owned by id", "no index on (partition_key, id)"},
		},
		{
			outbox.Table{Name: "texts"},
			[]string{"partition_key is integer: want text", "record_data is text: want jsonb"},
		},
		{
			outbox.Table{Name: "kinesis_records", HashKey: outbox.NoColumn},
			[]string{"no index on (partition_key, id)"},
		},
	} {
		err := c.table.Check(t.Context(), db)
		if !errors.Is(err, outbox.ErrUnfit) {
			t.Errorf("%s: %v", c.table.Name, err)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: no %q in %v", c.table.Name, want, err)
			}
		}
	}
	p.exec("create index on kinesis_records (partition_key, id)")
	p.must(outbox.Table{Name: "kinesis_records", HashKey: outbox.NoColumn}.Check(t.Context(), db))
}

// The same for SQLite.
func TestCheckSQLite(t *testing.T) {
	open := func(pragmas string) *sql.DB {
		db, err := sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "app.db")+pragmas)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		statements, err := outbox.Table{}.Schema(outbox.DialectSQLite)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range append(statements, "create table plain (id integer primary key, "+
			"partition_key text, record_data blob)") {
			if _, err := db.ExecContext(t.Context(), text); err != nil {
				t.Fatal(err)
			}
		}
		return db
	}
	sound := outbox.SQLite(open("?_pragma=journal_mode(wal)&_pragma=synchronous(full)"))
	if err := (outbox.Table{}).Check(t.Context(), sound); err != nil {
		t.Error(err)
	}
	for _, c := range []struct {
		db    outbox.DB
		table outbox.Table
		want  []string
	}{
		{sound, outbox.Table{Name: "nowhere"}, []string{"there is no such table"}},
		{
			sound,
			outbox.Table{Name: "plain", HashKey: outbox.NoColumn},
			[]string{
				"not AUTOINCREMENT", "record_data is blob: want text",
				"no index on (partition_key, id)",
			},
		},
		{
			outbox.SQLite(open("?_pragma=synchronous(off)")),
			outbox.Table{},
			[]string{"journal mode is delete", "synchronous is 0"},
		},
	} {
		err := c.table.Check(t.Context(), c.db)
		if !errors.Is(err, outbox.ErrUnfit) {
			t.Errorf("%s: %v", c.table.Name, err)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: no %q in %v", c.table.Name, want, err)
			}
		}
	}
}
