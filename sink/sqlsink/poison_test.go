package sqlsink_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/sink/sqlsink"
)

var errBad = errors.New("bad record")

// refusing returns a handler that fails after the effects of a batch with a bad record.
func (r *rig) refusing(bad func(n int) bool) handler {
	return func(ctx context.Context, do statement, batch *sqlsink.Batch) error {
		if err := r.effects(ctx, do, batch); err != nil {
			return err
		}
		for i := range batch.Records {
			if bad(number(batch.Records[i])) {
				return fmt.Errorf("%s: %w", batch.Records[i].PartitionKey, errBad)
			}
		}
		return nil
	}
}

// number returns the number of a record.
func number(r runnel.Record) (n int) {
	_, _ = fmt.Sscan(string(r.Data), &n)
	return n
}

// dead returns the numbers of the dead letters, in order, and their errors.
func (r *rig) dead() (numbers []int, reasons []string) {
	r.Helper()
	rows, err := r.direct.db.QueryContext(r.Context(), "select data, error from runnel_dead "+
		"where app = $1 order by position", r.app)
	must(r, err)
	defer rows.Close()
	for rows.Next() {
		var record runnel.Record
		var reason string
		must(r, rows.Scan(&record.Data, &reason))
		numbers, reasons = append(numbers, number(record)), append(reasons, reason)
	}
	must(r, rows.Err())
	return numbers, reasons
}

// A handler that fails holds its shard: the pauses grow, and no later record comes first.
func TestHold(t *testing.T) {
	each(t, func(t *testing.T, d *database) {
		r := newRig(t, d, 6)
		var healed atomic.Bool
		var seen atomic.Int64
		w := r.open(r.sink(func(ctx context.Context, do statement, batch *sqlsink.Batch) error {
			if first := number(batch.Records[0]); first != 2 && !healed.Load() {
				seen.Store(int64(first))
			}
			err := r.effects(ctx, do, batch)
			if err == nil && number(batch.Records[0]) == 2 && !healed.Load() {
				panic("the handler has a fault")
			}
			return err
		}))
		done := started(t, func() error { return r.pump(t.Context(), w, 2) })
		until(t, "it has failed", func() bool { return len(r.retries.list()) > 6 })
		r.wantEffects(r.records[:2]...)
		if seen.Load() != 0 {
			t.Errorf("record %d came first", seen.Load())
		}
		healed.Store(true)
		must(t, within(t, time.Minute, done))
		r.wantEffects(r.records...)
		all := r.retries.list()
		if !all[0].Blamed || !strings.Contains(all[0].Err.Error(), "the handler has a fault") ||
			all[0].Records != 2 || all[6].Pause < 8*all[0].Pause {
			t.Errorf("%+v", all)
		}
	})
}

// Only the records that fail become dead letters; the others take effect once and in order.
func TestDeadLetters(t *testing.T) {
	each(t, func(t *testing.T, d *database) {
		for name, bad := range map[string][]int{
			"one of 1,000": {617}, "the first": {0}, "the last": {999}, "some": {3, 4, 500, 998},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				r := newRig(t, d, 1000)
				r.cfg.Poison = sqlsink.DeadLetter
				var reported []int
				r.cfg.OnDead = func(dead sqlsink.Dead) {
					if !errors.Is(dead.Err, errBad) {
						t.Errorf("record %d: %v", number(dead.Record), dead.Err)
					}
					reported = append(reported, number(dead.Record))
				}
				w := r.open(r.sink(r.refusing(func(n int) bool { return slices.Contains(bad, n) })))
				r.write(w, 0, 1000)
				good := slices.DeleteFunc(slices.Clone(r.records), func(record runnel.Record) bool {
					return slices.Contains(bad, number(record))
				})
				r.wantEffects(good...)
				numbers, reasons := r.dead()
				if !slices.Equal(numbers, bad) || !slices.Equal(reported, bad) ||
					!strings.Contains(reasons[0], fmt.Sprintf("key-%d: bad record", bad[0])) {
					t.Errorf("dead %v, reported %v, want %v: %q", numbers, reported, bad, reasons)
				}
				if n := r.blamed(); n != 5 {
					t.Errorf("the handler has failed %d times", n)
				}
			})
		}
	})
}

// A record that fails only beside another one is no dead letter, and neither is the other.
func TestDeadTogether(t *testing.T) {
	each(t, func(t *testing.T, d *database) {
		r := newRig(t, d, 100)
		r.cfg.Poison = sqlsink.DeadLetter
		w := r.open(r.sink(func(ctx context.Context, do statement, batch *sqlsink.Batch) error {
			if err := r.effects(ctx, do, batch); err != nil || len(batch.Records) < 7 {
				return err
			}
			return errBad
		}))
		r.write(w, 0, 100)
		r.wantEffects(r.records...)
		if numbers, _ := r.dead(); len(numbers) > 0 {
			t.Errorf("dead: %v", numbers)
		}
	})
}

// Texts that a database does not take, and a dead letter that is there, are no reason to stop. All
// records fail.
func TestDeadHostile(t *testing.T) {
	each(t, func(t *testing.T, d *database) {
		r := newRig(t, d, 3)
		r.cfg.Poison = sqlsink.DeadLetter
		r.records[0].PartitionKey = "a\x00b\xffc"
		r.records[1].ArrivalTime = time.Time{}
		r.records[2].PartitionKey = strings.Repeat("\U0001F600", 64)
		h := func(context.Context, statement, *sqlsink.Batch) error {
			return errors.New("\x00\xff" + strings.Repeat("é", 5000))
		}
		r.write(r.open(r.sink(h)), 0, 3)
		r.wantEffects()
		r.exec("delete from runnel_position") // as a restore
		r.write(r.open(r.sink(h)), 0, 2)
		numbers, reasons := r.dead()
		if !slices.Equal(numbers, []int{0, 1, 2}) || !strings.HasPrefix(reasons[0], "\ufffd\ufffdé") {
			t.Errorf("dead: %v %.20q", numbers, reasons)
		}
	})
}

// A constraint that is put off fails in COMMIT. It blames its record, and the handlers of the other
// parts keep the constraint as they know it: a child before its parent.
func TestDeadDeferred(t *testing.T) {
	eachPostgres(t, func(t *testing.T, d *database) {
		r := newRig(t, d, 40)
		r.cfg.Poison = sqlsink.DeadLetter
		r.exec("create table parents (id int primary key)")
		r.exec("create table children (id int references parents deferrable initially deferred)")
		w := r.open(r.sink(func(ctx context.Context, do statement, batch *sqlsink.Batch) error {
			for _, record := range batch.Records {
				n := number(record)
				err := do(ctx, "insert into children values ($1)", n)
				if err == nil && n != 13 {
					err = do(ctx, "insert into parents values ($1)", n)
				}
				if err != nil {
					return err
				}
			}
			return nil
		}))
		r.write(w, 0, 40)
		numbers, reasons := r.dead()
		if !slices.Equal(numbers, []int{13}) || !strings.Contains(reasons[0], "foreign key") {
			t.Errorf("dead: %v %q", numbers, reasons)
		}
		if n := r.count("select count(*) from children"); n != 39 {
			t.Errorf("%d effects, want 39", n)
		}
	})
}

// first returns a handler that makes its first calls of another one.
func (r *rig) first(calls int, fail handler) handler {
	var made atomic.Int64
	return func(ctx context.Context, do statement, batch *sqlsink.Batch) error {
		if made.Add(1) <= int64(calls) {
			return fail(ctx, do, batch)
		}
		return r.effects(ctx, do, batch)
	}
}

// These failures blame no record, however often they come.
func TestNotBlamed(t *testing.T) {
	each(t, func(t *testing.T, d *database) {
		fails := map[string]handler{
			"a missing table": func(ctx context.Context, do statement, _ *sqlsink.Batch) error {
				return do(ctx, "insert into nowhere values (1)")
			},
			"its own time-out": func(ctx context.Context, do statement, _ *sqlsink.Batch) error {
				ctx, cancel := context.WithTimeout(ctx, time.Millisecond)
				defer cancel()
				<-ctx.Done()
				return do(ctx, "delete from effects")
			},
		}
		if !d.isSQLite() {
			end := "select pg_terminate_backend(pg_backend_pid())"
			fails["a lost connection, hidden"] = func(
				ctx context.Context, do statement, _ *sqlsink.Batch,
			) error {
				_ = do(ctx, end)
				return errors.New("no luck")
			}
			fails["a lost connection, swallowed"] = func(
				ctx context.Context, do statement, _ *sqlsink.Batch,
			) error {
				_ = do(ctx, end)
				return nil
			}
			fails["a time-out in a statement"] = func(
				ctx context.Context, do statement, _ *sqlsink.Batch,
			) error {
				ctx, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
				defer cancel()
				return do(ctx, "select pg_sleep(10)")
			}
		}
		for name, fail := range fails {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				r := newRig(t, d, 3)
				r.cfg.Poison = sqlsink.DeadLetter
				r.write(r.open(r.sink(r.first(7, fail))), 0, 3)
				r.wantEffects(r.records...)
				r.wantUnblamed()
				if n := len(r.retries.list()); n < 7 {
					t.Errorf("it has failed %d times", n)
				}
			})
		}
	})
}

// Errors of decoders blame their record, although they look like those of a connection.
func TestBlamed(t *testing.T) {
	each(t, func(t *testing.T, d *database) {
		for name, decode := range map[string]func() error{
			"end of file": func() error {
				return json.NewDecoder(strings.NewReader("")).Decode(new(int))
			},
			"truncated": func() error { return io.ErrUnexpectedEOF },
			"a URL": func() error {
				_, err := url.Parse("http://[" + t.Name())
				return err
			},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				r := newRig(t, d, 3)
				r.cfg.Poison = sqlsink.DeadLetter
				w := r.open(r.sink(func(ctx context.Context, do statement, b *sqlsink.Batch) error {
					for i := range b.Records {
						if number(b.Records[i]) == 1 {
							return fmt.Errorf("decode: %w", decode())
						}
					}
					return r.effects(ctx, do, b)
				}))
				done := started(t, func() error { return r.pump(t.Context(), w, 3) })
				must(t, within(t, 20*time.Second, done))
				r.wantEffects(r.records[0], r.records[2])
			})
		}
	})
}

// A handler that swallows a failed statement loses nothing: PostgreSQL refuses the commit.
func TestSwallowed(t *testing.T) {
	eachPostgres(t, func(t *testing.T, d *database) {
		r := newRig(t, d, 4)
		r.cfg.Poison = sqlsink.DeadLetter
		w := r.open(r.sink(func(ctx context.Context, do statement, b *sqlsink.Batch) error {
			for i := range b.Records {
				if number(b.Records[i]) == 2 {
					_ = do(ctx, "select 1 / 0")
					return nil
				}
			}
			return r.effects(ctx, do, b)
		}))
		r.write(w, 0, 4)
		r.wantEffects(r.records[0], r.records[1], r.records[3])
		if numbers, _ := r.dead(); !slices.Equal(numbers, []int{2}) {
			t.Errorf("dead: %v", numbers)
		}
	})
}

// An error of class 42 may be caused by data: to_tsquery has one for a text that is no query. It
// holds the shard and blames no record, unless the handler returns it without its SQLSTATE.
func TestDeadOfClass42(t *testing.T) {
	eachPostgres(t, func(t *testing.T, d *database) {
		for _, wrapped := range []bool{true, false} {
			r := newRig(t, d, 8)
			r.cfg.Poison = sqlsink.DeadLetter
			s := r.sink(func(ctx context.Context, do statement, batch *sqlsink.Batch) error {
				for _, record := range batch.Records {
					query := "a & b"
					if number(record) == 3 {
						query = "a & & b"
					}
					err := do(ctx, "select to_tsquery($1)", query)
					if err != nil && wrapped {
						return fmt.Errorf("search: %w", err)
					}
					if err != nil {
						return fmt.Errorf("search: %v", err)
					}
				}
				return r.effects(ctx, do, batch)
			})
			w := r.open(s)
			if !wrapped {
				r.write(w, 0, 8)
				if numbers, reasons := r.dead(); !slices.Equal(numbers, []int{3}) {
					t.Errorf("dead: %v %q", numbers, reasons)
				}
				continue
			}
			ctx, cancel := context.WithCancel(t.Context())
			done := started(t, func() error {
				_, err := w.Write(ctx, r.batch(0, 8))
				return err
			})
			until(t, "it has failed", func() bool { return len(r.retries.list()) > 6 })
			cancel()
			if err := within(t, time.Minute, done); err == nil {
				t.Error("the shard does not hold")
			}
			r.wantUnblamed()
			r.wantEffects()
		}
	})
}
