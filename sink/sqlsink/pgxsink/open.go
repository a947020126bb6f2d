package pgxsink

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// open closes the rows or the batch that a handler has left open. A connection has one of them at
// most: it refuses other statements meanwhile.
type open struct {
	conn *pgconn.PgConn
	last func() error // closes the last rows or batch
}

var errOpen = errors.New("pgxsink: the handler has left rows open: close them")

// end closes the open rows or batch, and returns their error from PostgreSQL, which the handler has
// not seen. A connection that has refused another statement meanwhile cannot be freed: pgx has lost
// the rows.
func (o *open) end() error {
	if o.conn.IsBusy() && o.last != nil {
		err := o.last()
		if refused, ok := errors.AsType[*pgconn.PgError](err); ok {
			return fmt.Errorf("%w: %w", errOpen, refused)
		}
	}
	if o.conn.IsBusy() {
		return errOpen
	}
	return nil
}

// tracked is a transaction that notes its open rows and batches.
type tracked struct {
	pgx.Tx
	open *open
}

// note returns a function that notes how to close the rows of a call. It notes nothing if the
// connection refuses the call.
func (t tracked) note() func(closing func() error) {
	if t.open.conn.IsBusy() {
		return func(func() error) {}
	}
	return func(closing func() error) { t.open.last = closing }
}

func (t tracked) Begin(ctx context.Context) (pgx.Tx, error) {
	tx, err := t.Tx.Begin(ctx)
	if err != nil {
		return nil, err
	}
	return tracked{tx, t.open}, nil
}

func (t tracked) Query(ctx context.Context, text string, args ...any) (pgx.Rows, error) {
	note := t.note()
	rows, err := t.Tx.Query(ctx, text, args...)
	if err == nil {
		note(func() error {
			rows.Close()
			return rows.Err()
		})
	}
	return rows, err
}

func (t tracked) QueryRow(ctx context.Context, text string, args ...any) pgx.Row {
	note := t.note()
	row := t.Tx.QueryRow(ctx, text, args...)
	note(func() error { return row.Scan() }) // which closes it
	return row
}

func (t tracked) SendBatch(ctx context.Context, batch *pgx.Batch) pgx.BatchResults {
	note := t.note()
	results := t.Tx.SendBatch(ctx, batch)
	note(results.Close)
	return results
}
