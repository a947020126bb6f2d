package outbox

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
)

// Dialect is a kind of database.
type Dialect string

// The dialects.
const (
	DialectPostgres Dialect = "postgres"
	DialectSQLite   Dialect = "sqlite"
)

// DataType is the type of the column with the records' data. JSON goes out as its text.
type DataType string

// The types of data. SQLite stores JSON as text.
const (
	JSONB DataType = "jsonb"
	JSON  DataType = "json"
	Text  DataType = "text"
	Bytea DataType = "bytea" // any bytes; BLOB in SQLite
)

// Table names an outbox table and its columns. The zero value is the table that Schema makes.
type Table struct {
	// Name is the table's, in PostgreSQL perhaps with its schema: "outbox", "app.outbox"; without
	// one it is in the schema public. Default outbox.
	Name string
	// ID is the column of the rows' ids: an integer that the database draws. Default id.
	ID string
	// Key is the column of the partition keys: text. Default partition_key.
	Key string
	// Data is the column of the records' data. Default record_data.
	Data string
	// HashKey is the column of explicit hash keys: text with a decimal number, or null. NoColumn:
	// the table has none. Default explicit_hash_key.
	HashKey string
	// Type is the type of Data. Default JSONB.
	Type DataType
}

// NoColumn is the HashKey of a table without explicit hash keys.
const NoColumn = "-"

func (t Table) withDefaults() Table {
	t.Name = cmp.Or(t.Name, "outbox")
	t.ID = cmp.Or(t.ID, "id")
	t.Key = cmp.Or(t.Key, "partition_key")
	t.Data = cmp.Or(t.Data, "record_data")
	t.HashKey = cmp.Or(t.HashKey, "explicit_hash_key")
	t.Type = cmp.Or(t.Type, JSONB)
	return t
}

// longestName bounds the names, so that those made of them, as outbox_journal, fit into an
// identifier of PostgreSQL, which cuts names off behind 63 bytes.
const longestName = 40

// Validate reports every fault of the names.
func (t Table) Validate() error {
	t = t.withDefaults()
	var faults []error
	schema, name, qualified := strings.Cut(t.Name, ".")
	if !qualified {
		schema, name = "x", t.Name
	}
	for _, n := range []struct{ field, text string }{
		{"Name", schema},
		{"Name", name},
		{"ID", t.ID},
		{"Key", t.Key},
		{"Data", t.Data},
		{"HashKey", t.HashKey},
	} {
		if n.text == "" || len(n.text) > longestName || strings.ContainsAny(n.text, ".\"\x00") {
			faults = append(faults, fmt.Errorf("outbox: %s is %q: want a name of at most %d "+
				"bytes, without quotes, and at most one dot in a table's", n.field, n.text,
				longestName))
		}
	}
	switch t.Type {
	case JSONB, JSON, Text, Bytea:
	default:
		faults = append(faults, fmt.Errorf("outbox: Type is %q: want %s, %s, %s or %s", t.Type,
			JSONB, JSON, Text, Bytea))
	}
	return errors.Join(faults...)
}

// quote writes an identifier for SQL.
func quote(names ...string) string {
	return `"` + strings.Join(names, `"."`) + `"`
}

// quoted returns the table's name for SQL. In PostgreSQL it has its schema, so that it is the same
// table whatever the search path is.
func (t Table) quoted(dialect Dialect) string {
	if dialect == DialectSQLite {
		return quote(t.Name)
	}
	return quote(t.schema(), t.base())
}

// schema returns the table's schema in PostgreSQL.
func (t Table) schema() string {
	if schema, _, qualified := strings.Cut(t.Name, "."); qualified {
		return schema
	}
	return "public"
}

// fits reports whether the table can be one of a database.
func (t Table) fits(dialect Dialect) error {
	switch {
	case dialect != DialectPostgres && dialect != DialectSQLite:
		return errDialect
	case dialect == DialectSQLite && strings.Contains(t.Name, "."):
		return fmt.Errorf("outbox: Name is %q: SQLite has no schemas", t.Name)
	}
	return nil
}

// base returns the table's name without its schema.
func (t Table) base() string {
	_, name, qualified := strings.Cut(t.Name, ".")
	if !qualified {
		return t.Name
	}
	return name
}

// hasHashKey reports whether the table has a column of explicit hash keys.
func (t Table) hasHashKey() bool { return t.HashKey != NoColumn }
