package sqlsink_test

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/runnel-stream/runnel/internal/pgtest"
	"github.com/runnel-stream/runnel/sink"
	"github.com/runnel-stream/runnel/sink/sqlsink"
)

// through returns the database as it is reached by another URL.
func (d *database) through(t testing.TB, at string) *database {
	t.Helper()
	db, err := sql.Open("pgx", at)
	must(t, err)
	t.Cleanup(func() { _ = db.Close() })
	next := &database{Dialect: d.Dialect, db: db, url: at}
	if d.pool != nil {
		next.pool, err = pgxpool.New(t.Context(), at)
		must(t, err)
		t.Cleanup(next.pool.Close)
	}
	return next
}

// pump writes all records in batches of a size, and goes on where moves say.
func (r *rig) pump(ctx context.Context, w sink.Writer, size int) error {
	last := r.records[len(r.records)-1].Position
	for w.Committed().End.Less(last) {
		from := 0
		for !w.Committed().End.Less(r.records[from].Position) {
			from++
		}
		_, err := w.Write(ctx, r.batch(from, min(from+size, len(r.records))))
		if moved := new(sink.MovedError); err != nil && !errors.As(err, &moved) {
			return err
		}
	}
	return nil
}

// Connections end in COMMIT: it is done, or not done, or done late, after the writer has asked for
// the row again. Two writers compete for the row.
func TestLostCommits(t *testing.T) {
	eachPostgres(t, func(t *testing.T, d *database) {
		wire := pgtest.NewWire(t, d.url, "commit\x00")
		r := newRig(t, d.through(t, wire.URL), 240)
		r.cfg.Failover = 5 * time.Second
		var group sync.WaitGroup
		for size := range 2 {
			w := r.open(r.sink(nil))
			group.Go(func() {
				if err := r.pump(t.Context(), w, 2+size); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		wire.Hit(0)
		r.wantEffects(r.records...)
		r.wantUnblamed()
		if n := wire.Hits(); n < 10 {
			t.Errorf("%d connections were lost", n)
		}
	})
}

// A connection that hangs without an end costs about three times the failover time.
func TestHangingConnection(t *testing.T) {
	for when, of := range map[string]func(r *rig, hang func()) handler{
		"between batches": func(r *rig, hang func()) handler { return r.effects },
		"in COMMIT":       func(r *rig, hang func()) handler { return onceIn(r.effects, hang) },
		"in the handler, which fails": func(r *rig, hang func()) handler {
			failed := false
			return func(ctx context.Context, do statement, batch *sqlsink.Batch) error {
				if err := r.effects(ctx, do, batch); err != nil || failed {
					return err
				}
				failed = true
				hang()
				return errors.New("no luck")
			}
		},
		"between savepoints": func(r *rig, hang func()) handler {
			r.cfg.Poison = sqlsink.DeadLetter
			calls := 0
			return func(ctx context.Context, do statement, batch *sqlsink.Batch) error {
				if calls++; calls <= 6 {
					if calls == 6 {
						hang()
						return nil
					}
					return errors.New("no luck")
				}
				return r.effects(ctx, do, batch)
			}
		},
	} {
		t.Run(when, func(t *testing.T) {
			eachPostgres(t, func(t *testing.T, d *database) {
				wire := pgtest.NewWire(t, d.url)
				r := newRig(t, d, 4)
				r.d = d.through(t, wire.URL)
				r.cfg.Failover = 500 * time.Millisecond
				h := of(r, wire.Hang)
				w := r.open(r.sink(h))
				if when == "between batches" {
					r.write(w, 0, 2)
					wire.Hang()
				}
				done := started(t, func() error { return r.pump(t.Context(), w, 2) })
				must(t, within(t, 25*time.Second, done))
				r.wantEffects(r.records...)
			})
		})
	}
}
