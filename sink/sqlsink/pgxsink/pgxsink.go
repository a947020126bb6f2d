// Package pgxsink is package sqlsink with pgx's own transactions, for COPY, batches and the types
// of PostgreSQL.
package pgxsink

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/runnel-stream/runnel/sink/sqlsink"
)

// Handler makes the effects of a batch, as sqlsink.Handler does, in a transaction of pgx. Commit
// and Rollback of the transaction return an error and do nothing.
type Handler func(ctx context.Context, tx pgx.Tx, batch *sqlsink.Batch) error

// New returns a sink over a pool. The fields DB, Dialect, Client and Handler of cfg stay empty; the
// others have their meaning. It does not reach the database.
func New(pool *pgxpool.Pool, handler Handler, cfg sqlsink.Config) (*sqlsink.Sink, error) {
	cfg.Client, cfg.Dialect = client{pool, handler}, sqlsink.Postgres()
	return sqlsink.New(cfg)
}

// client is a sqlsink.Client.
type client struct {
	pool    *pgxpool.Pool
	handler Handler
}

func (c client) Begin(ctx context.Context, level sql.IsolationLevel) (sqlsink.Tx, error) {
	options := pgx.TxOptions{}
	if level != sql.LevelDefault {
		options.IsoLevel = pgx.TxIsoLevel(strings.ToLower(level.String()))
	}
	tx, err := c.pool.BeginTx(ctx, options)
	if err != nil {
		return nil, err
	}
	return transaction{tx, c.handler}, nil
}

func (c client) Query(
	ctx context.Context, text string, args []any, each func(scan func(to ...any) error) error,
) error {
	rows, err := c.pool.Query(ctx, text, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := each(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}

type transaction struct {
	tx      pgx.Tx
	handler Handler
}

func (t transaction) Exec(ctx context.Context, text string, args ...any) (int64, error) {
	tag, err := t.tx.Exec(ctx, text, args...)
	return tag.RowsAffected(), err
}

// Handle calls the handler, and closes its open rows: the sink's own statements would fail
// with "conn busy", and neither blame a record nor name the handler's error.
func (t transaction) Handle(ctx context.Context, batch *sqlsink.Batch) error {
	left := &open{conn: t.tx.Conn().PgConn()}
	err := t.handler(ctx, unended{tracked{t.tx, left}}, batch)
	if failed := left.end(); err == nil {
		err = failed
	}
	return err
}

// unended is a transaction that its handler cannot end: neither by mistake nor by the habit of a
// deferred Rollback.
type unended struct{ tracked }

var errEnd = errors.New("pgxsink: the sink ends the transaction, and not its handler")

func (unended) Commit(context.Context) error { return errEnd }

func (unended) Rollback(context.Context) error { return errEnd }

func (t transaction) Commit(ctx context.Context) error { return t.tx.Commit(ctx) }

// Rollback must reach the connection even if the context has ended. A connection that does not
// answer is closed.
func (t transaction) Rollback(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTimeout)
	defer cancel()
	_ = t.tx.Rollback(ctx)
}

const rollbackTimeout = 2 * time.Second
