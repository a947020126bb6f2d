package sqlsink_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/sqldb"
	"github.com/runnel-stream/runnel/sink"
	"github.com/runnel-stream/runnel/sink/sqlsink"
)

// newChildRig returns a rig whose shard has two parents at their ends, and no row.
func newChildRig(t *testing.T, d *database) *rig {
	t.Helper()
	r := newRig(t, d, 6)
	child := r.shard
	child.ID = "shardId-000000000002"
	for _, id := range []runnel.ShardID{"shardId-000000000000", "shardId-000000000001"} {
		r.shard.ID = id
		_, err := r.open(r.sink(nil)).End(t.Context())
		must(t, err)
		child.Parents = append(child.Parents, id)
	}
	r.shard = child
	for i := range r.records {
		r.records[i].ShardID = child.ID
	}
	return r
}

// The first commit of a shard needs its parents' ends. A restore may have come after the writer was
// opened: the rest of a parent would then take effect after records of its child.
func TestFirstCommitNeedsParents(t *testing.T) {
	each(t, func(t *testing.T, d *database) {
		for _, id := range []runnel.ShardID{"shardId-000000000000", "shardId-000000000001"} {
			for change, text := range map[string]string{
				"goes back": "update runnel_position set position = $3 where app = $1 and shard = $2",
				"is gone": "delete from runnel_position where app = $1 and shard = $2 " +
					"and position > $3",
			} {
				t.Run(string(id)+" "+change, func(t *testing.T) {
					r := newChildRig(t, d)
					r.cfg.Every = time.Nanosecond
					for _, meet := range []func(w sink.Writer) error{
						func(w sink.Writer) error { // an idle writer looks
							_, err := w.Write(t.Context(), sink.Batch{Through: runnel.Start()})
							return err
						},
						func(w sink.Writer) error {
							_, err := w.Write(t.Context(), r.batch(0, 3))
							return err
						},
						func(w sink.Writer) error {
							_, err := w.End(t.Context())
							return err
						},
					} {
						w := r.open(r.sink(nil))
						r.exec(text, r.app, string(id), r.records[0].Position.SortText())
						err := meet(w)
						moved := new(sink.MovedError)
						if err == nil || errors.As(err, &moved) ||
							!strings.Contains(err.Error(), "is gone") {
							t.Fatalf("got %v", err)
						}
						r.wantEffects()
						r.endParent(id)
					}
					must(t, r.pump(t.Context(), r.open(r.sink(nil)), 4))
					r.wantEffects(r.records...)
				})
			}
		}
	})
}

// endParent brings a parent to its end again.
func (r *rig) endParent(id runnel.ShardID) {
	r.Helper()
	parent := r.shard
	parent.ID, parent.Parents = id, nil
	w, err := r.sink(nil).Open(r.Context(), parent)
	must(r, err)
	_, err = w.End(r.Context())
	must(r, err)
}

// A restore that comes during the first commit of a shard waits for it: the parents' rows are
// locked. SQLite has one writer at a time.
func TestFirstCommitLocksParents(t *testing.T) {
	eachPostgres(t, func(t *testing.T, d *database) {
		r := newChildRig(t, d)
		calls := 0
		w := r.open(r.sink(func(ctx context.Context, do statement, b *sqlsink.Batch) error {
			if calls++; calls == 1 {
				for _, id := range r.shard.Parents {
					if err := r.goesBack(ctx, id); sqldb.State(err) != sqldb.LockNotAvailable {
						t.Errorf("%s goes back during its child's first commit: %v", id, err)
					}
				}
			}
			return r.effects(ctx, do, b)
		}))
		must(t, r.pump(t.Context(), w, 3))
		r.wantEffects(r.records...)
	})
}

// The parents' rows are locked in one order, so of two first commits none waits for the other in a
// circle.
func TestFirstCommitLocksInOrder(t *testing.T) {
	eachPostgres(t, func(t *testing.T, d *database) {
		r := newChildRig(t, d)
		slices.Reverse(r.shard.Parents)
		w := r.open(r.sink(nil))
		tx, err := d.db.BeginTx(t.Context(), nil)
		must(t, err)
		defer func() { _ = tx.Rollback() }()
		const locked = "select from runnel_position where app = $1 and shard = $2 for update"
		_, err = tx.ExecContext(t.Context(), locked, r.app, "shardId-000000000000")
		must(t, err)
		writing := started(t, func() error {
			_, err := w.Write(t.Context(), r.batch(0, 3))
			return err
		})
		until(t, "the commit waits for the first parent", func() bool {
			return r.count("select count(*) from pg_stat_activity where wait_event_type = 'Lock' "+
				"and datname = current_database()") > 0
		})
		_, err = tx.ExecContext(t.Context(), locked+" nowait", r.app, "shardId-000000000001")
		must(t, err)
		must(t, tx.Commit())
		must(t, within(t, time.Minute, writing))
	})
}

// goesBack changes the row of a shard, unless it is locked.
func (r *rig) goesBack(ctx context.Context, id runnel.ShardID) error {
	tx, err := r.direct.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if _, err := tx.ExecContext(ctx, "set local lock_timeout = '50ms'"); err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, "update runnel_position set position = 'start' "+
		"where app = $1 and shard = $2", r.app, string(id))
	return err
}
