package pgxsink_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/pgtest"
	"github.com/runnel-stream/runnel/sink"
	"github.com/runnel-stream/runnel/sink/sqlsink"
	"github.com/runnel-stream/runnel/sink/sqlsink/pgxsink"
)

var errBad = errors.New("bad record")

// write opens a sink with a handler, writes one record, and returns the dead letters' errors. The
// first error that blames no record ends it: held.
func write(t *testing.T, pool *pgxpool.Pool, app string, handler pgxsink.Handler) (
	dead []error, held error,
) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	s, err := pgxsink.New(pool, handler, sqlsink.Config{
		App: app, Poison: sqlsink.DeadLetter, Logger: slog.New(slog.DiscardHandler),
		OnDead: func(d sqlsink.Dead) { dead = append(dead, d.Err) },
		OnRetry: func(r sqlsink.Retry) {
			if !r.Blamed && held == nil {
				held = r.Err
				cancel()
			}
		},
	})
	if err == nil {
		err = s.Migrate(ctx)
	}
	if err != nil {
		t.Fatal(err)
	}
	w, err := s.Open(ctx, sink.Shard{
		Stream: "orders", Created: time.UnixMilli(1_700_000_000_000), ID: "shardId-000000000000",
	})
	if err != nil {
		t.Fatal(err)
	}
	at := runnel.Position{Sequence: "1001"}
	record := runnel.Record{ShardID: "shardId-000000000000", Position: at}
	_, err = w.Write(ctx, sink.Batch{Records: []runnel.Record{record}, Through: at})
	if held == nil {
		held = err
	}
	return dead, held
}

const (
	many = "select generate_series(1, 100000)"
	late = "select 1 / (5 - g) from generate_series(1, 10) g" // its fifth row is an error
)

// openRows reads one row of a query.
func openRows(text string) pgxsink.Handler {
	return func(ctx context.Context, tx pgx.Tx, _ *sqlsink.Batch) error {
		rows, err := tx.Query(ctx, text)
		if err == nil {
			rows.Next()
		}
		return err
	}
}

func openRow(ctx context.Context, tx pgx.Tx, _ *sqlsink.Batch) error {
	_ = tx.QueryRow(ctx, many)
	return nil
}

func openBatch(ctx context.Context, tx pgx.Tx, _ *sqlsink.Batch) error {
	batch := &pgx.Batch{}
	batch.Queue(many)
	batch.Queue(many)
	_ = tx.SendBatch(ctx, batch)
	return nil
}

func openNested(ctx context.Context, tx pgx.Tx, batch *sqlsink.Batch) error {
	inner, err := tx.Begin(ctx)
	if err != nil {
		return err
	}
	return openRows(many)(ctx, inner, batch)
}

// openRefused has a statement that the connection refuses beside open rows.
func openRefused(ctx context.Context, tx pgx.Tx, batch *sqlsink.Batch) error {
	if err := openRows(many)(ctx, tx, batch); err != nil {
		return err
	}
	_ = tx.QueryRow(ctx, many)
	return nil
}

// bad returns a handler that fails in the end.
func bad(of pgxsink.Handler) pgxsink.Handler {
	return func(ctx context.Context, tx pgx.Tx, batch *sqlsink.Batch) error {
		if err := of(ctx, tx, batch); err != nil {
			return err
		}
		return errBad
	}
}

// Handlers that leave something open. The error that is reported, and blames the record, is the
// handler's own, or that of the statement. Without an error the batch is done.
func TestLeftOpen(t *testing.T) {
	pool, err := pgxpool.New(t.Context(), pgtest.Shared(t).URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	for name, of := range map[string]pgxsink.Handler{
		"rows": openRows(many), "row": openRow, "batch": openBatch, "nested": openNested,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dead, held := write(t, pool, "good-"+name, of)
			if held != nil || len(dead) != 0 {
				t.Errorf("held by %v, dead %v", held, dead)
			}
			dead, held = write(t, pool, "bad-"+name, bad(of))
			if held != nil || len(dead) != 1 || !errors.Is(dead[0], errBad) {
				t.Errorf("held by %v, dead %v, want %v", held, dead, errBad)
			}
		})
	}
	t.Run("late", func(t *testing.T) {
		t.Parallel()
		dead, held := write(t, pool, "late", openRows(late))
		if held != nil || len(dead) != 1 || !strings.Contains(dead[0].Error(), "division by zero") {
			t.Errorf("held by %v, dead %v", held, dead)
		}
	})
	t.Run("refused", func(t *testing.T) {
		t.Parallel()
		if _, held := write(t, pool, "bad-refused", bad(openRefused)); !errors.Is(held, errBad) {
			t.Errorf("beside a bad record: %v", held)
		}
		_, held := write(t, pool, "refused", openRefused)
		if held == nil || !strings.Contains(held.Error(), "left rows open: close them") {
			t.Errorf("held by %v", held)
		}
	})
}
