package sqlsink_test

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"sync/atomic"
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

// failing returns a handler that inserts the effects and then fails so many times. hang is called
// with the last failure.
func (r *rig) failing(times int, hang func()) handler {
	var calls atomic.Int64
	return func(ctx context.Context, do statement, batch *sqlsink.Batch) error {
		if err := r.effects(ctx, do, batch); err != nil || calls.Add(1) > int64(times) {
			return err
		}
		if calls.Load() == int64(times) {
			hang()
		}
		return errors.New("no luck")
	}
}

// A connection that hangs without an end costs about three times the failover time.
func TestHangingConnection(t *testing.T) {
	eachPostgres(t, func(t *testing.T, d *database) {
		for when, of := range map[string]func(r *rig, hang func()) handler{
			"between batches":    func(r *rig, _ func()) handler { return r.effects },
			"in COMMIT":          func(r *rig, hang func()) handler { return onceIn(r.effects, hang) },
			"in ROLLBACK":        func(r *rig, hang func()) handler { return r.failing(1, hang) },
			"between savepoints": func(r *rig, hang func()) handler { return r.failing(6, hang) },
		} {
			t.Run(when, func(t *testing.T) {
				t.Parallel()
				wire := pgtest.NewWire(t, d.url)
				r := newRig(t, d, 4)
				r.d = d.through(t, wire.URL)
				t.Cleanup(wire.Close)
				r.cfg.Failover, r.cfg.Poison = 500*time.Millisecond, sqlsink.DeadLetter
				w := r.open(r.sink(of(r, wire.Hang)))
				if when == "between batches" {
					r.write(w, 0, 2)
					wire.Hang()
				}
				done := started(t, func() error { return r.pump(t.Context(), w, 2) })
				must(t, within(t, 20*time.Second, done))
				r.wantEffects(r.records...)
			})
		}
	})
}

// eachServer runs a test with each client of a PostgreSQL that the test may kill.
func eachServer(t *testing.T, test func(t *testing.T, d *database)) {
	t.Parallel()
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		test(t, mortal(t))
	})
	t.Run("pgx", func(t *testing.T) {
		t.Parallel()
		test(t, withPGX(t, mortal(t)))
	})
}

// PostgreSQL is killed while batches run, and is away for longer than every time-out. The writer
// waits.
func TestServerAway(t *testing.T) {
	eachServer(t, func(t *testing.T, d *database) {
		r := newRig(t, d, 1500)
		r.cfg.Failover = 200 * time.Millisecond
		var calls atomic.Int64
		w := r.open(r.sink(func(ctx context.Context, do statement, batch *sqlsink.Batch) error {
			calls.Add(1)
			return r.effects(ctx, do, batch)
		}))
		done := started(t, func() error { return r.pump(t.Context(), w, 3) })
		for _, outage := range []time.Duration{0, 2 * time.Second} {
			before := calls.Load()
			until(t, "batches run", func() bool { return calls.Load() > before+5 })
			d.server.Kill()
			time.Sleep(outage)
			select {
			case err := <-done:
				t.Fatal("the writer has ended:", err)
			default:
			}
			d.server.Start()
		}
		must(t, within(t, time.Minute, done))
		r.wantEffects(r.records...)
		r.wantUnblamed()
	})
}

// A call that waits for the database returns soon once the worker stops or the context ends.
func TestEndWhileAway(t *testing.T) {
	eachServer(t, func(t *testing.T, d *database) {
		r := newRig(t, d, 4)
		s := r.sink(nil)
		first, second := r.open(s), r.open(s)
		r.write(first, 0, 1)
		d.server.Kill()
		defer d.server.Start()
		stopping := make(chan struct{})
		stopped := started(t, func() error {
			_, err := first.Write(sink.WithStopping(t.Context(), stopping), r.batch(1, 4))
			return err
		})
		ctx, cancel := context.WithCancelCause(t.Context())
		reason := errors.New("the shard is lost")
		cancelled := started(t, func() error {
			_, err := second.Write(ctx, r.batch(0, 4))
			return err
		})
		until(t, "both have failed", func() bool { return len(r.retries.list()) > 8 })
		close(stopping)
		if err := within(t, 3*time.Second, stopped); err == nil {
			t.Error("a commit without a database")
		}
		cancel(reason)
		if err := within(t, 3*time.Second, cancelled); !errors.Is(err, reason) {
			t.Errorf("got %v, want the context's cause", err)
		}
	})
}

// counters are two rows that two handlers write.
func (d *database) counters(t testing.TB) {
	t.Helper()
	for _, text := range []string{
		"create table counters (id int primary key, n int)",
		"insert into counters values (1, 0), (2, 0)",
	} {
		_, err := d.db.ExecContext(t.Context(), text)
		must(t, err)
	}
}

// race writes the records of two shards, with a handler each, at the same time.
func (r *rig) race(handlers ...handler) {
	var group sync.WaitGroup
	for n, h := range handlers {
		one := newRig(r.T, r.d, len(r.records))
		one.cfg = r.cfg
		w := one.open(one.sink(h))
		group.Go(func() {
			if err := one.pump(r.Context(), w, 1); err != nil {
				r.Errorf("shard %d: %v", n, err)
			}
		})
	}
	group.Wait()
	r.wantUnblamed()
}

// Two shards read and write the same row, in transactions that have both begun. PostgreSQL makes
// one of these fail.
func TestSerialization(t *testing.T) {
	each(t, func(t *testing.T, d *database) {
		d.counters(t)
		r := newRig(t, d, 60)
		r.cfg.Isolation = sql.LevelSerializable
		if d.isSQLite() {
			r.cfg.Isolation = sql.LevelDefault
		}
		var begun atomic.Int32
		both := make(chan struct{})
		h := func(ctx context.Context, do statement, batch *sqlsink.Batch) error {
			if !d.isSQLite() { // which lets one transaction write at a time
				if begun.Add(1) == 2 {
					close(both)
				}
				select {
				case <-both:
				case <-ctx.Done():
					return ctx.Err()
				}
			}
			for range batch.Records {
				err := do(ctx, "update counters set n = (select n from counters where id = 1) + 1 "+
					"where id = 1")
				if err != nil {
					return err
				}
			}
			return nil
		}
		r.race(h, h)
		if n := r.count("select n from counters where id = 1"); n != 120 {
			t.Errorf("the counter is %d, want 120", n)
		}
		if !d.isSQLite() && len(r.retries.list()) == 0 {
			t.Error("no transaction has failed")
		}
	})
}

// Two handlers lock two rows in opposite order.
func TestDeadlock(t *testing.T) {
	eachPostgres(t, func(t *testing.T, d *database) {
		d.counters(t)
		r := newRig(t, d, 3)
		meet := make(chan struct{})
		var calls atomic.Int64
		locks := func(first, second int) handler {
			return func(ctx context.Context, do statement, batch *sqlsink.Batch) error {
				add := "update counters set n = n + 1 where id = $1"
				if err := do(ctx, add, first); err != nil {
					return err
				}
				if n := calls.Add(1); n == 2 {
					close(meet)
				} else if n == 1 {
					<-meet
				}
				return do(ctx, add, second)
			}
		}
		r.race(locks(1, 2), locks(2, 1))
		if n := r.count("select sum(n) from counters"); n != 12 {
			t.Errorf("the counters are %d, want 12", n)
		}
		if len(r.retries.list()) == 0 {
			t.Error("there was no deadlock")
		}
	})
}
