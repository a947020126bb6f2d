package sqlsink

import (
	"context"
	"database/sql"
	"errors"
)

// Client is the seam between a Sink and the program that speaks to the database: database/sql,
// which Config.DB and Config.Handler make one of, or pgx (package pgxsink). It is safe for
// concurrent use.
type Client interface {
	// Begin begins a transaction.
	Begin(ctx context.Context, level sql.IsolationLevel) (Tx, error)
	// Query runs a query and calls each for its rows; scan reads the columns of the row.
	Query(
		ctx context.Context, text string, args []any, each func(scan func(to ...any) error) error,
	) error
}

// Tx is a transaction. It is used by one goroutine at a time.
type Tx interface {
	// Exec runs a statement and returns the number of rows that it has changed.
	Exec(ctx context.Context, text string, args ...any) (int64, error)
	// Handle calls the user's handler with the transaction as the client knows it.
	Handle(ctx context.Context, batch *Batch) error
	// Commit commits. It returns an error if the handler has ended the transaction.
	Commit(ctx context.Context) error
	// Rollback ends the transaction without an effect, also if ctx has ended. It returns no error,
	// since there is no remedy.
	Rollback(ctx context.Context)
}

// databaseSQL is the Client of database/sql.
type databaseSQL struct {
	db      *sql.DB
	handler Handler
}

func (c databaseSQL) Begin(ctx context.Context, level sql.IsolationLevel) (Tx, error) {
	tx, err := c.db.BeginTx(ctx, &sql.TxOptions{Isolation: level})
	if err != nil {
		return nil, err
	}
	return databaseTx{tx, c.handler}, nil
}

func (c databaseSQL) Query(
	ctx context.Context, text string, args []any, each func(scan func(to ...any) error) error,
) (err error) {
	rows, err := c.db.QueryContext(ctx, text, args...)
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

type databaseTx struct {
	tx      *sql.Tx
	handler Handler
}

func (t databaseTx) Exec(ctx context.Context, text string, args ...any) (int64, error) {
	result, err := t.tx.ExecContext(ctx, text, args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

func (t databaseTx) Handle(ctx context.Context, batch *Batch) error {
	return t.handler(ctx, t.tx, batch)
}

func (t databaseTx) Commit(context.Context) error { return t.tx.Commit() }

func (t databaseTx) Rollback(context.Context) { _ = t.tx.Rollback() }
