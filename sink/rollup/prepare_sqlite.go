package rollup

import (
	"context"
	"database/sql"
	"errors"
	"strings"
)

func (l *sqlite) is() *shape { return l.of }

func (l *sqlite) typeOf(k kind) string { return sqliteTypes[k] }

func (l *sqlite) notNull(c cell) string {
	return "SQLite cannot alter that, so make the table anew with " + quote(c.name) + " " +
		sqliteTypes[c.kind] + " not null"
}

// exclusive takes the lock of the writer, which the first write takes.
func (l *sqlite) exclusive(ctx context.Context, tx *sql.Tx) error {
	_, err := tx.ExecContext(ctx, "update runnel_position set position = position where false")
	if err != nil {
		return err
	}
	var encoding string
	err = tx.QueryRowContext(ctx, "pragma encoding").Scan(&encoding)
	if err == nil && encoding != "UTF-8" {
		err = unfit("the database's encoding is %s, in which texts have another order: use a "+
			"database with the encoding UTF-8", encoding)
	}
	return err
}

func (l *sqlite) registry() string {
	return "create table if not exists runnel_rollup (table_name text primary key, " +
		"app text not null, stream text not null, definition text not null, " +
		"created_at text not null default (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')))"
}

var sqliteTypes = map[kind]string{
	kindInt: "integer", kindDouble: "real", kindText: "text", kindTime: "text",
}

// create makes a STRICT table: in others an integer column takes a sum that has overflowed, as a
// double.
func (l *sqlite) create() string {
	return "create table " + l.of.table + " (" + l.of.definitions(sqliteTypes, "") +
		", primary key (" + l.of.key() + ")) strict, without rowid"
}

func (l *sqlite) createBad() string { return l.of.createBad("blob", "text") }

const sqliteColumns = `select name, lower(type), "notnull" and dflt_value is null, not "notnull",
  pk > 0 from pragma_table_info(?)`

const sqliteIndexes = `select
  (select group_concat(coalesce(name, '')) from pragma_index_info(i.name))
from pragma_index_list(?) i where i."unique" and not i.partial
  and not exists (select 1 from pragma_index_xinfo(i.name) x where x.key and x.coll <> 'BINARY')`

func (l *sqlite) describe(ctx context.Context, tx *sql.Tx) (*described, error) {
	d := &described{columns: map[string]describedColumn{}}
	name := base(l.of.table[1 : len(l.of.table)-1])
	name = strings.ReplaceAll(name, `""`, `"`)
	var relation string
	var strict bool
	err := tx.QueryRowContext(ctx, "select name, type, strict from pragma_table_list "+
		"where name = ? collate nocase and schema = 'main'", name).Scan(&d.name, &relation, &strict)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil //nolint:nilnil // there is none, which is no error
	}
	if err != nil {
		return nil, err
	}
	if relation != "table" {
		return nil, unfit("%s is there and is no table: name another --table", d.name)
	}
	d.loose = !strict
	err = scanEach(ctx, tx, sqliteColumns, d.name, func(scan func(...any) error) error {
		var name string
		var c describedColumn
		err := scan(&name, &c.text, &c.required, &c.nullable, &c.primary)
		c.kind = l.kindOf(name, c.text)
		d.columns[name] = c
		return err
	})
	if err != nil {
		return nil, err
	}
	return d, scanEach(ctx, tx, sqliteIndexes, d.name, func(scan func(...any) error) error {
		var columns string
		err := scan(&columns)
		d.unique = append(d.unique, strings.Split(columns, ","))
		return err
	})
}

// kindOf returns the kind of a column by its declared type, as SQLite takes it ("Datatypes in
// SQLite", 3.1). A time is a text.
func (l *sqlite) kindOf(name, declared string) kind {
	has := func(words ...string) bool {
		for _, word := range words {
			if strings.Contains(declared, word) {
				return true
			}
		}
		return false
	}
	switch {
	case has("int"):
		return kindInt
	case has("char", "clob", "text") && name == bucketName && l.of.Bucket > 0:
		return kindTime
	case has("char", "clob", "text"):
		return kindText
	case has("real", "floa", "doubt"):
		return kindDouble
	}
	return ""
}
