package cli

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"

	"github.com/runnel-stream/runnel/consumer"
	"github.com/runnel-stream/runnel/internal/exit"
	"github.com/runnel-stream/runnel/internal/retry"
	"github.com/runnel-stream/runnel/internal/sqldb"
	"github.com/runnel-stream/runnel/outbox"
	"github.com/runnel-stream/runnel/sink/rollup"
	"github.com/runnel-stream/runnel/sink/sqlsink"
)

// rollupConnections is the number of connections that a rollup has to a database at most. Shards
// wait for one another beyond it.
const rollupConnections = 16

// preparePatience is the time that the checks of the tables may take. A database may take the
// connection and give no answer.
const preparePatience = 15 * time.Second

// toSQL lets the worker write to the database of --db. end ends the command with an error.
func (f *rollupFlags) toSQL(
	ctx context.Context, worker *consumer.Config, of rollup.Definition, counts *rollupCounts,
	end context.CancelCauseFunc,
) (closeDB func(), err error) {
	kind, db, err := f.openSQL(ctx)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = db.Close()
		}
	}()
	r, err := rollup.New(rollup.Config{
		Definition: of, DB: db, Dialect: kind, Table: f.table, App: worker.App,
		Stream: f.stream, Bad: f.policy(), AllowGaps: f.allowGaps,
		Failover: f.fleet.failover, Logger: worker.Logger, OnCommit: counts.committed,
		OnRetry: func(r sqlsink.Retry) {
			counts.retries.Add(1)
			if final := finalOf(r.Err); final != nil {
				end(final)
			}
		},
	})
	if err != nil {
		return nil, exit.Usage("%w", err)
	}
	err = patiently(ctx, func() error {
		ctx, cancel := context.WithTimeout(ctx, preparePatience)
		defer cancel()
		return r.Prepare(ctx)
	})
	switch unfit := new(rollup.UnfitError); {
	case errors.As(err, &unfit):
		return nil, exit.Usage("%w", err)
	case err != nil:
		return nil, databaseError(err, "--db")
	}
	worker.Sink, worker.Output = r, sqlOutput
	return func() { _ = db.Close() }, nil
}

// sqlOutput keeps an application that fills a SQL database out of stores of rows, and the other way
// round. It names neither the database, which may be moved, nor the table, which Prepare compares.
const sqlOutput = "a SQL database"

// openSQL opens the database of --db.
func (f *rollupFlags) openSQL(ctx context.Context) (rollup.Dialect, *sql.DB, error) {
	kind, err := dialectOf(f.db)
	if err != nil {
		return "", nil, err
	}
	if kind == outbox.DialectSQLite {
		db, err := openSQLite(ctx, f.db, "runnel rollup", true)
		return rollup.SQLite, db, err
	}
	db, err := sql.Open("pgx", f.db)
	if err != nil {
		return "", nil, exit.Usage("--db: %w", err)
	}
	db.SetMaxOpenConns(rollupConnections)
	db.SetMaxIdleConns(rollupConnections)
	return rollup.Postgres, db, nil
}

// databaseError returns the command's error for a database that cannot be used, which a flag names.
// It is a text of one line, since the advice about servers of streams would be wrong.
func databaseError(err error, flag string) error {
	text := strings.Join(strings.Fields(err.Error()), " ")
	return exit.Outside(errors.New(text + "; " + flag + " names the database"))
}

// patiently calls do until it succeeds or the database answers, for ten seconds at most: it may be
// starting.
func patiently(ctx context.Context, do func() error) error {
	pauses := retry.Backoff{Min: 100 * time.Millisecond, Max: time.Second}
	start := time.Now()
	for failures := 1; ; failures++ {
		err := do()
		if err == nil || !sqldb.Starting(err) || time.Since(start) > 10*time.Second {
			return err
		}
		if pauses.Wait(ctx, failures) != nil {
			return err
		}
	}
}

// finalOf returns the error with which a rollup ends at another error; nil if it goes on.
func finalOf(err error) error {
	if gap := new(sqlsink.GapError); errors.As(err, &gap) {
		return &exit.Error{Status: exit.StatusNo, Err: fmt.Errorf("%w; --allow-gaps does so", gap)}
	}
	if bad := new(rollup.BadRecordError); errors.As(err, &bad) {
		return exit.Usage("%w; --bad skip keeps such records in the table of bad ones", bad)
	}
	return nil
}
