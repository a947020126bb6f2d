package outbox_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/runnel-stream/runnel/outbox"
)

// as returns a pool of a new role.
func (p *postgres) as(role string) *pgxpool.Pool {
	p.t.Helper()
	p.exec("create role " + role + " login")
	cfg, err := pgxpool.ParseConfig(p.url)
	p.must(err)
	cfg.ConnConfig.User = role
	pool, err := pgxpool.NewWithConfig(p.t.Context(), cfg)
	p.must(err)
	p.t.Cleanup(pool.Close)
	return pool
}

// A writer needs the right to insert alone, also under the trigger, or to execute the function
// alone. A schema of the caller's with functions of the same names changes nothing.
func TestRights(t *testing.T) {
	table := outbox.Table{}
	p := newPostgres(t, table)
	insert := func(pool *pgxpool.Pool) error {
		return pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
			return table.Insert(t.Context(), outbox.PGX(tx),
				outbox.Row{Key: "a", Data: []byte(`{}`)}, outbox.Row{Key: "b", HashKey: "1", Data: []byte(`{}`)})
		})
	}
	caller, writer := p.as("caller"), p.as("writer")
	p.exec("grant insert on outbox to writer")
	p.exec("create schema caller authorization caller")
	_, err := caller.Exec(t.Context(), "create function caller.md5(text) returns text "+
		"language sql as $$ select 1/0 || '' $$; set search_path = caller, pg_catalog, public")
	p.must(err)
	call := func(pool *pgxpool.Pool) error {
		_, err := pool.Exec(t.Context(), "select "+table.Function()+"('a', '{}')")
		return err
	}
	if err := call(caller); err == nil {
		t.Error("a role without rights has called the function")
	}
	p.exec("grant execute on function " + table.Function() + " to caller, writer")
	p.must(call(caller))
	if err := insert(caller); err == nil {
		t.Error("a role without rights has inserted")
	}
	p.must(insert(writer))
	text, err := table.Trigger()
	p.must(err)
	p.exec(text)
	p.must(call(caller))
	p.must(insert(writer))
	var rows int
	p.must(p.pool.QueryRow(t.Context(), "select count(*) from outbox").Scan(&rows))
	if rows != 6 {
		t.Errorf("%d rows, want 6", rows)
	}
}

// A slow trigger of the table's owner that runs before the trigger of the order changes nothing,
// since that one draws a new id behind the lock.
func TestSlowTrigger(t *testing.T) {
	table := outbox.Table{}
	p := newPostgres(t, table)
	text, err := table.Trigger()
	p.must(err)
	p.exec(text)
	p.exec(`create function slow() returns trigger language plpgsql as $$
begin perform pg_sleep(random() * 0.003); return new; end $$`)
	p.exec("create trigger a_slow before insert on outbox for each row execute function slow()")
	p.write(8, 40, func(ctx context.Context, tx pgx.Tx, key string, _ int) error {
		var id int64
		err := tx.QueryRow(ctx, `insert into outbox (partition_key, record_data)
			values ($1, '{"n":0}') returning id`, key).Scan(&id)
		if err != nil {
			return err
		}
		n, err := numbered(ctx, tx, key)
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `update outbox set record_data = jsonb_build_object('n', $1::int)
			where id = $2`, n, id)
		return err
	})
	if rows, inversions := p.inversions(); rows != 320 || inversions > 0 {
		t.Errorf("%d rows, %d inversions", rows, inversions)
	}
}
