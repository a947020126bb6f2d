package sqlsink_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/aggregate"
	"github.com/runnel-stream/runnel/sink"
	"github.com/runnel-stream/runnel/sink/sqlsink"
)

// backup copies the rows and the effects of all applications.
func (r *rig) backup() {
	r.Helper()
	r.exec("create table old_position as select * from runnel_position")
	r.exec("create table old_effects as select * from effects")
}

// restore sets the database back to the backup, in one transaction.
func (r *rig) restore() {
	r.Helper()
	tx, err := r.direct.db.BeginTx(r.Context(), nil)
	must(r, err)
	for _, text := range []string{
		"delete from runnel_position", "delete from effects",
		"insert into runnel_position select * from old_position",
		"insert into effects select * from old_effects",
	} {
		_, err := tx.ExecContext(r.Context(), text)
		must(r, err)
	}
	must(r, tx.Commit())
}

// The database goes back under a live writer. It adopts the position of the backup, and each record
// takes effect once.
func TestRestored(t *testing.T) {
	each(t, func(t *testing.T, d *database) {
		for when, meet := range map[string]func(r *rig, w sink.Writer) error{
			"with records": func(r *rig, w sink.Writer) error {
				_, err := w.Write(r.Context(), r.batch(4, 6))
				return err
			},
			"idle": func(r *rig, w sink.Writer) error {
				_, err := w.Write(r.Context(), sink.Batch{Through: w.Committed().End})
				return err
			},
			"at its end": func(r *rig, w sink.Writer) error {
				_, err := w.End(r.Context())
				return err
			},
		} {
			t.Run(when, func(t *testing.T) {
				r := newRig(t, d, 6)
				r.cfg.Every = time.Nanosecond
				t.Cleanup(func() {
					for _, table := range []string{"old_position", "old_effects"} {
						_, _ = d.db.ExecContext(context.WithoutCancel(t.Context()), "drop table "+table)
					}
				})
				w := r.open(r.sink(nil))
				r.write(w, 0, 2)
				r.backup()
				r.write(w, 2, 4)
				r.restore()
				r.wantMoved(w, meet(r, w), 1)
				must(t, r.pump(t.Context(), w, 2))
				if c, err := w.End(t.Context()); err != nil || c.End != runnel.End() {
					t.Fatal(c, err)
				}
				r.wantEffects(r.records...)
			})
		}
	})
}

// A row that is gone ends the writer with an error. Opened again, the shard begins anew.
func TestRowGone(t *testing.T) {
	each(t, func(t *testing.T, d *database) {
		gone := func(r *rig) { r.exec("delete from runnel_position where app = $1", r.app) }
		for when, meet := range map[string]func(r *rig, w sink.Writer) error{
			"with records": func(r *rig, w sink.Writer) error {
				gone(r)
				_, err := w.Write(r.Context(), r.batch(2, 4))
				return err
			},
			"idle": func(r *rig, w sink.Writer) error {
				gone(r)
				_, err := w.Write(r.Context(), sink.Batch{Through: w.Committed().End})
				return err
			},
			"at its end": func(r *rig, w sink.Writer) error {
				gone(r)
				_, err := w.End(r.Context())
				return err
			},
			"with its table": func(r *rig, w sink.Writer) error {
				r.exec("drop table runnel_position")
				waiting := started(r.T, func() error {
					_, err := w.Write(r.Context(), r.batch(2, 4))
					return err
				})
				until(r, "a failure", func() bool { return len(r.retries.list()) > 0 })
				must(r, r.sink(nil).Migrate(r.Context()))
				return within(r, time.Minute, waiting)
			},
		} {
			t.Run(when, func(t *testing.T) {
				r := newRig(t, d, 4)
				r.cfg.Every = time.Nanosecond
				s := r.sink(nil)
				w := r.open(s)
				r.write(w, 0, 2)
				err := meet(r, w)
				moved := new(sink.MovedError)
				if err == nil || errors.As(err, &moved) || !strings.Contains(err.Error(), "is gone") {
					t.Fatalf("got %v", err)
				}
				r.exec("delete from effects where app = $1", r.app)
				w = r.open(s)
				if w.Committed().End != runnel.Start() {
					t.Fatalf("it begins after %s", w.Committed().End)
				}
				r.write(w, 0, 4)
				r.wantEffects(r.records...)
			})
		}
	})
}

// After a restore another writer has come to the same position: the first one's next commit does
// not go through.
func TestSamePosition(t *testing.T) {
	each(t, func(t *testing.T, d *database) {
		r := newRig(t, d, 6)
		s := r.sink(nil)
		first := r.open(s)
		r.write(first, 0, 2)
		r.backup()
		r.write(first, 2, 4)
		r.restore()
		second := r.open(s)
		r.write(second, 2, 4)
		_, err := first.Write(t.Context(), r.batch(4, 5))
		r.wantMoved(first, err, 3)
		r.write(first, 4, 6)
		r.wantEffects(r.records...)
	})
}

// Without AllowGaps a gap ends the writer, and nothing is committed.
func TestGapRefused(t *testing.T) {
	each(t, func(t *testing.T, d *database) {
		r := newRig(t, d, 6)
		gap := &sink.Gap{After: r.records[1].Position, Before: r.records[4].Position, Reason: "age"}
		w := r.open(r.sink(nil))
		r.write(w, 0, 2)
		batch := r.batch(4, 6)
		batch.Gap = gap
		_, err := w.Write(t.Context(), batch)
		refused := new(sqlsink.GapError)
		if !errors.As(err, &refused) || refused.Gap != *gap || refused.ShardID != r.shard.ID ||
			refused.App != r.app {
			t.Fatalf("got %v", err)
		}
		r.wantEffects(r.records[:2]...)
		if w := r.open(r.sink(nil)); w.Committed().End != r.records[1].Position {
			t.Errorf("committed up to %s", w.Committed().End)
		}
		r.cfg.AllowGaps = true
		var seen *sink.Gap
		w = r.open(r.sink(func(ctx context.Context, do statement, b *sqlsink.Batch) error {
			seen = b.Gap
			return r.effects(ctx, do, b)
		}))
		_, err = w.Write(t.Context(), batch)
		must(t, err)
		if seen == nil || *seen != *gap {
			t.Errorf("the handler got %v", seen)
		}
		kept, err := d.gapsOf(t.Context(), r.app, r.shard)
		must(t, err)
		if !strings.Contains(kept, gap.After.SortText()) || !strings.Contains(kept, `"age"`) {
			t.Errorf("the row has %s", kept)
		}
		r.wantEffects(slices.Concat(r.records[:2], r.records[4:])...)
	})
}

// A bad value in a row is an error that names the shard, the column and the fix.
func TestHostileRows(t *testing.T) {
	each(t, func(t *testing.T, d *database) {
		for name, c := range map[string]struct{ change, column string }{
			"a position":       {"set position = 'LATEST'", "position"},
			"an empty one":     {"set position = ''", "position"},
			"a state":          {"set state = 'garbage', changes = 'garbage'", "state"},
			"changes":          {"set changes = 'garbage'", "changes"},
			"changes, cut off": {"set changes = 'z'", "changes"},
			"gaps":             {"set gap = 'garbage'", "gap"},
		} {
			t.Run(name, func(t *testing.T) {
				r := newRig(t, d, 4)
				r.cfg.AllowGaps = true
				s := r.sink(nil)
				w := r.open(s)
				first := r.batch(0, 2)
				first.State = func() []byte {
					state, err := new(aggregate.Filter).MarshalBinary()
					must(t, err)
					return state
				}
				_, err := w.Write(t.Context(), first)
				must(t, err)
				r.exec("update runnel_position " + c.change + " where app = '" + r.app + "'")
				if w, err = s.Open(t.Context(), r.shard); err == nil {
					batch := r.batch(3, 4)
					batch.Gap = &sink.Gap{After: r.records[1].Position, Before: r.records[3].Position}
					_, err = w.Write(t.Context(), batch)
				}
				for _, want := range []string{
					string(r.shard.ID), "column " + c.column, "runnel_position", "restore",
				} {
					if err == nil || !strings.Contains(err.Error(), want) {
						t.Errorf("got %v, want one with %q", err, want)
					}
				}
			})
		}
	})
}

// A table of another program, or of another version, has another shape.
func TestForeignTable(t *testing.T) {
	each(t, func(t *testing.T, d *database) {
		r := newRig(t, d, 4)
		for _, text := range []string{
			"create table runnel_position (app text, stream text, shard text, position text)",
			"create table runnel_position (app text, stream text, shard text, position text, " +
				"token text, state text, changes text, gap text)",
		} {
			r.exec("drop table runnel_position")
			r.exec(text)
			r.exec("insert into runnel_position (app, stream, shard, position) values "+
				"($1, 'orders@1700000000000', $2, $3)", r.app, string(r.shard.ID),
				r.records[0].Position.SortText())
			_, err := r.sink(nil).Open(t.Context(), r.shard)
			if err == nil || !strings.Contains(err.Error(), "token") ||
				!strings.Contains(err.Error(), "runnel_position") {
				t.Errorf("got %v", err)
			}
		}
	})
}
