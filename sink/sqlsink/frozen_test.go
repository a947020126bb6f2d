package sqlsink_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/runnel-stream/runnel/sink/sqlsink"
)

// blocked returns a handler that inserts the effects and then waits without a statement.
func (r *rig) blocked() (h handler, inside, release chan struct{}) {
	inside, release = make(chan struct{}), make(chan struct{})
	return onceIn(r.effects, func() {
		close(inside)
		<-release
	}), inside, release
}

// waiters counts the backends that wait for a lock.
func (r *rig) waiters() int {
	r.Helper()
	return r.count("select count(*) from pg_stat_activity where datname = current_database() " +
		"and wait_event_type = 'Lock'")
}

// The second writer waits for the row. Its handler is not called for records that the first one
// commits meanwhile.
func TestSecondWriterWaits(t *testing.T) {
	each(t, func(t *testing.T, d *database) {
		r := newRig(t, d, 8)
		for from := range 2 { // the row is inserted, and then moved
			h, inside, release := r.blocked()
			first := r.open(r.sink(h))
			second := r.open(r.sink(func(context.Context, statement, *sqlsink.Batch) error {
				t.Error("the second handler was called")
				return nil
			}))
			one := started(t, func() error {
				_, err := first.Write(t.Context(), r.batch(4*from, 4*from+4))
				return err
			})
			<-inside
			two := started(t, func() error {
				_, err := second.Write(t.Context(), r.batch(4*from, 4*from+2))
				return err
			})
			if !d.isSQLite() { // it shows no waiting
				until(t, "the second writer waits", func() bool { return r.waiters() == 1 })
			}
			close(release)
			must(t, within(t, time.Minute, one))
			r.wantMoved(second, within(t, time.Minute, two), 4*from+3)
		}
		r.wantEffects(r.records...)
	})
}

// A writer that is frozen in its handler holds its successor up for about the failover time. Then
// its commit fails, and it goes on after the successor.
func TestFrozenWriter(t *testing.T) {
	eachPostgres(t, func(t *testing.T, d *database) {
		r := newRig(t, d, 8)
		r.cfg.Failover = time.Second
		h, inside, release := r.blocked()
		frozen, successor := r.open(r.sink(h)), r.open(r.sink(nil))
		thawed := started(t, func() error {
			_, err := frozen.Write(t.Context(), r.batch(0, 4))
			return err
		})
		<-inside
		began := time.Now()
		r.write(successor, 0, 6)
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("the successor has waited for %s", took)
		}
		close(release)
		r.wantMoved(frozen, within(t, time.Minute, thawed), 5)
		r.write(frozen, 6, 8)
		r.wantEffects(r.records...)
		r.wantUnblamed()
	})
}

// raw is a client for states that a handler cannot reach.
type raw struct {
	*pgconn.PgConn
	t *testing.T
}

func newRaw(t *testing.T, at string) raw {
	t.Helper()
	conn, err := pgconn.Connect(t.Context(), at)
	must(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = conn.Close(ctx)
	})
	return raw{conn, t}
}

func (r raw) exec(text string) {
	r.t.Helper()
	must(r.t, r.Exec(r.t.Context(), text).Close())
}

// send sends messages and reads no answer.
func (r raw) send(messages ...pgproto3.FrontendMessage) {
	r.t.Helper()
	for _, m := range messages {
		r.Frontend().Send(m)
	}
	must(r.t, r.Frontend().Flush())
}

// states are those in which a client may be frozen within a statement.
var states = map[string][]pgproto3.FrontendMessage{
	"COPY from it":            {&pgproto3.Query{String: "copy effects from stdin"}},
	"between Parse and Sync":  {&pgproto3.Parse{Query: "select 1"}},
	"a result it never reads": {&pgproto3.Query{String: longResult}},
}

const longResult = "select repeat('x', 1000000) from generate_series(1, 1000)"

// waitsForClient waits until a backend waits for its client.
func (r *rig) waitsForClient(pid uint32) {
	r.Helper()
	until(r, "the backend waits for its client", func() bool {
		return r.count("select count(*) from pg_stat_activity where pid = $1 and "+
			"state = 'active' and wait_event in ('ClientRead', 'ClientWrite')", int(pid)) == 1
	})
}

func (r *rig) alive(pid uint32) bool {
	r.Helper()
	return r.count("select count(*) from pg_stat_activity where pid = $1", int(pid)) == 1
}

// A client that is frozen within a statement is out of the reach of PostgreSQL's idle timeout.
func TestFrozenInStatement(t *testing.T) {
	t.Parallel()
	d := postgres(t)
	for name, messages := range states {
		for what, first := range map[string]int{"its first batch": 0, "a later batch": 2} {
			t.Run(name+", "+what, func(t *testing.T) {
				t.Parallel()
				r := newRig(t, d, 6)
				r.cfg.Failover = 500 * time.Millisecond
				w := r.open(r.sink(nil))
				move := fmt.Sprintf("insert into runnel_position values ('%s', 'orders@1700000000000', "+
					"'%s', '%s', 'x')", r.app, r.shard.ID, r.records[0].Position.SortText())
				if first > 0 {
					r.write(w, 0, first)
					move = fmt.Sprintf("update runnel_position set token = 'x' where app = '%s'", r.app)
				}
				frozen := newRaw(t, d.url)
				frozen.exec("begin")
				frozen.exec(move)
				frozen.send(messages...)
				r.waitsForClient(frozen.PID())
				done := started(t, func() error {
					_, err := w.Write(t.Context(), r.batch(first, 6))
					return err
				})
				must(t, within(t, 20*time.Second, done))
				r.wantEffects(r.records...)
				r.wantUnblamed()
			})
		}
	}
}

// The writers free no row of a writer that is at work, and end no other client.
func TestFreeSparesOthers(t *testing.T) {
	eachPostgres(t, func(t *testing.T, d *database) {
		r := newRig(t, d, 6)
		r.cfg.Failover = 300 * time.Millisecond
		other := newRaw(t, d.url) // it waits for its client, and has no row
		other.exec("begin; create table others (n int); insert into others values (1)")
		other.send(states["COPY from it"]...)
		r.waitsForClient(other.PID())
		third := newRaw(t, d.url) // it has the row of another application
		third.exec("begin; insert into runnel_position values ('another', 's', 's', 'p', 't')")
		third.exec("commit; begin; update runnel_position set token = 'u' where app = 'another'")
		third.send(states["COPY from it"]...)
		r.waitsForClient(third.PID())
		if d.pool == nil { // and this one is idle
			newRaw(t, d.url).exec("begin; lock table effects in access share mode")
		}

		inside := make(chan struct{})
		sleeping := func(ctx context.Context, do statement, batch *sqlsink.Batch) error {
			close(inside)
			if err := do(ctx, "select pg_sleep(2)"); err != nil {
				return err
			}
			return r.effects(ctx, do, batch)
		}
		r.write(r.open(r.sink(nil)), 0, 1)
		slow, successor := r.open(r.sink(sleeping)), r.open(r.sink(nil))
		one := started(t, func() error {
			_, err := slow.Write(t.Context(), r.batch(1, 4))
			return err
		})
		<-inside
		_, err := successor.Write(t.Context(), r.batch(1, 6))
		r.wantMoved(successor, err, 3)
		must(t, within(t, time.Minute, one))
		r.wantEffects(r.records[:4]...)
		if len(r.retries.list()) == 0 {
			t.Error("the successor has not waited for too long")
		}
		if !r.alive(other.PID()) || !r.alive(third.PID()) {
			t.Error("another client was ended")
		}
		r.wantUnblamed()
	})
}
