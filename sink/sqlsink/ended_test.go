package sqlsink_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/runnel-stream/runnel/sink"
	"github.com/runnel-stream/runnel/sink/sqlsink"
	"github.com/runnel-stream/runnel/sink/sqlsink/pgxsink"
)

func (r *rig) openSQL(h sqlsink.Handler) sink.Writer {
	r.Helper()
	r.cfg.Handler = h
	s, err := sqlsink.New(r.d.config(r.app, r.cfg))
	must(r, err)
	return r.open(s)
}

// A handler that commits has its effects once.
func TestHandlerCommits(t *testing.T) {
	eachSQL(t, func(t *testing.T, d *database) {
		r := newRig(t, d, 6)
		w := r.openSQL(func(ctx context.Context, tx *sql.Tx, batch *sqlsink.Batch) error {
			if err := r.d.insertAll(r.app)(ctx, tx, batch); err != nil {
				return err
			}
			return tx.Commit()
		})
		must(t, r.pump(t.Context(), w, 2))
		r.wantEffects(r.records...)
	})
}

// A handler that commits and then fails has lost effects. The writer says so.
func TestHandlerCommitsAndFails(t *testing.T) {
	eachSQL(t, func(t *testing.T, d *database) {
		r := newRig(t, d, 6)
		for _, end := range []string{"", "commit"} {
			w := r.openSQL(func(ctx context.Context, tx *sql.Tx, batch *sqlsink.Batch) error {
				half := *batch
				half.Records = batch.Records[:1]
				if err := r.d.insertAll(r.app)(ctx, tx, &half); err != nil {
					return err
				}
				if end == "" {
					return errors.Join(tx.Commit(), errBad)
				}
				_, err := tx.ExecContext(ctx, end)
				return errors.Join(err, errBad)
			})
			_, err := w.Write(t.Context(), r.batch(0, 3))
			if err == nil || !strings.Contains(err.Error(), "effects may be missing") {
				t.Errorf("got %v", err)
			}
			r.exec("delete from runnel_position")
		}
	})
}

// A handler that rolls back holds its shard.
func TestHandlerRollsBack(t *testing.T) {
	eachSQL(t, func(t *testing.T, d *database) {
		r := newRig(t, d, 6)
		r.cfg.Poison = sqlsink.DeadLetter
		calls := 0
		w := r.openSQL(func(ctx context.Context, tx *sql.Tx, batch *sqlsink.Batch) error {
			if err := r.d.insertAll(r.app)(ctx, tx, batch); err != nil {
				return err
			}
			if calls++; calls <= 7 {
				return tx.Rollback()
			}
			return nil
		})
		r.write(w, 0, 6)
		r.wantEffects(r.records...)
	})
}

// With pgx, a handler cannot end its transaction.
func TestHandlerEndsPGX(t *testing.T) {
	t.Parallel()
	r := newRig(t, withPGX(t, postgres(t)), 6)
	cfg := r.cfg
	cfg.App, cfg.Failover = r.app, time.Minute
	h := r.d.pgxHandler(r.app)
	s, err := pgxsink.New(r.d.pool, func(
		ctx context.Context, tx pgx.Tx, batch *sqlsink.Batch,
	) error {
		defer func() { _ = tx.Rollback(ctx) }()
		half := *batch
		half.Records = batch.Records[:1]
		if err := h(ctx, tx, &half); err != nil {
			return err
		}
		if err := tx.Commit(ctx); err == nil {
			t.Error("the handler has committed")
		}
		half.Records = batch.Records[1:]
		return h(ctx, tx, &half)
	}, cfg)
	must(t, err)
	must(t, r.pump(t.Context(), r.open(s), 3))
	r.wantEffects(r.records...)
}
