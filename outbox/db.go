package outbox

import (
	"database/sql"

	"github.com/jackc/pgx/v5/pgxpool"
)

// DB is the database of an outbox: Postgres or SQLite.
type DB interface {
	dialect() Dialect
}

// Postgres returns the database of a pool. It works through a pooler in transaction mode: it takes
// no session lock and prepares no statement.
func Postgres(pool *pgxpool.Pool) DB { return postgresDB{pool} }

type postgresDB struct{ pool *pgxpool.Pool }

func (postgresDB) dialect() Dialect { return DialectPostgres }

// SQLite returns a database of SQLite.
func SQLite(db *sql.DB) DB { return sqliteDB{db} }

type sqliteDB struct{ db *sql.DB }

func (sqliteDB) dialect() Dialect { return DialectSQLite }
