package rollup

import (
	"context"
	"database/sql"
	"errors"
	"strings"
)

func (p *postgres) is() *shape { return p.of }

// exclusive takes an advisory lock: two "create table if not exists" at once may both fail.
func (p *postgres) exclusive(ctx context.Context, tx *sql.Tx) error {
	_, err := tx.ExecContext(ctx,
		"select pg_advisory_xact_lock(hashtextextended('runnel tables', 0))")
	return err
}

func (p *postgres) registry() string {
	return "create table if not exists runnel_rollup (table_name text primary key, " +
		"app text not null, stream text not null, definition text not null, " +
		"created_at timestamptz not null default now())"
}

func (p *postgres) create() string {
	return "create table " + p.of.table + " (" + p.of.definitions(postgresTypes, ` collate "C"`) +
		", primary key (" + p.of.key() + "))"
}

// definitions returns the columns with their types.
func (s *shape) definitions(types map[kind]string, ofText string) string {
	all := names(s.cells)
	for i, c := range s.cells {
		all[i] += " " + types[c.kind]
		if c.kind == kindText {
			all[i] += ofText
		}
		all[i] += " not null"
	}
	return strings.Join(all, ", ")
}

func (p *postgres) createBad() string { return p.of.createBad("bytea", "timestamptz") }

const postgresColumns = `select a.attname, format_type(a.atttypid, a.atttypmod),
  a.attnotnull and not a.atthasdef and a.attidentity = '' and a.attgenerated = ''
from pg_attribute a where a.attrelid = $1 and a.attnum > 0 and not a.attisdropped`

// Indexes on expressions have the column number 0, which no row of pg_attribute has.
const postgresIndexes = `select string_agg(a.attname, ',') from pg_index i
  join lateral unnest(i.indkey[0:i.indnkeyatts - 1]) with ordinality k(num, place) on true
  left join pg_attribute a on a.attrelid = i.indrelid and a.attnum = k.num
where i.indrelid = $1 and i.indisunique and i.indisvalid and i.indimmediate and i.indpred is null
group by i.indexrelid having count(a.attname) = count(*)`

func (p *postgres) describe(ctx context.Context, tx *sql.Tx) (*described, error) {
	d := &described{columns: map[string]describedColumn{}}
	var id int64
	var relation string
	err := tx.QueryRowContext(ctx, "select cast(c.oid as bigint), n.nspname || '.' || c.relname, "+
		"cast(c.relkind as text) from pg_class c join pg_namespace n on n.oid = c.relnamespace "+
		"where c.oid = to_regclass($1)", p.of.table).Scan(&id, &d.name, &relation)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil //nolint:nilnil // there is none, which is no error
	}
	if err != nil {
		return nil, err
	}
	if relation != "r" && relation != "p" {
		return nil, unfit("%s is there and is no table: name another --table", d.name)
	}
	err = scanEach(ctx, tx, postgresColumns, id, func(scan func(...any) error) error {
		var name string
		var c describedColumn
		err := scan(&name, &c.text, &c.required)
		for k, text := range postgresTypes {
			if c.text == text {
				c.kind = k
			}
		}
		d.columns[name] = c
		return err
	})
	if err != nil {
		return nil, err
	}
	return d, scanEach(ctx, tx, postgresIndexes, id, func(scan func(...any) error) error {
		var columns string
		err := scan(&columns)
		d.unique = append(d.unique, strings.Split(columns, ","))
		return err
	})
}

// scanEach runs a query with one argument.
func scanEach(
	ctx context.Context, tx *sql.Tx, text string, arg any, each func(func(...any) error) error,
) (err error) {
	rows, err := tx.QueryContext(ctx, text, arg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		if err := each(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}
