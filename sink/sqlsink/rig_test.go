package sqlsink_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/sink"
	"github.com/runnel-stream/runnel/sink/sqlsink"
	"github.com/runnel-stream/runnel/sink/sqlsink/pgxsink"
)

// statement runs a statement in a handler's transaction, whatever the client is.
type statement func(ctx context.Context, text string, args ...any) error

// handler is a handler for both clients.
type handler func(ctx context.Context, do statement, batch *sqlsink.Batch) error

// rig is a shard, its records, and sinks of one application.
type rig struct {
	*testing.T
	d       *database // of the sinks
	direct  *database // of the checks
	app     string
	cfg     sqlsink.Config
	shard   sink.Shard
	records []runnel.Record
	retries retries
}

// retries collects the calls of OnRetry.
type retries struct {
	mu  sync.Mutex
	all []sqlsink.Retry
}

func (r *retries) add(retry sqlsink.Retry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, retry)
}

func (r *retries) list() []sqlsink.Retry {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.all)
}

func newRig(t *testing.T, d *database, count int) *rig {
	t.Helper()
	r := &rig{T: t, d: d, direct: d, app: fmt.Sprintf("rig-%d", d.apps.Add(1)), shard: sink.Shard{
		Stream: "orders", Created: time.UnixMilli(1_700_000_000_000), ID: "shardId-000000000000",
	}}
	r.cfg = sqlsink.Config{Failover: 30 * time.Second, OnRetry: r.retries.add}
	for n := range count {
		r.records = append(r.records, r.record(n))
	}
	return r
}

func (r *rig) record(n int) runnel.Record {
	return runnel.Record{
		PartitionKey: fmt.Sprint("key-", n), Data: fmt.Append(nil, n), ShardID: r.shard.ID,
		Position:    runnel.Position{Sequence: runnel.SequenceNumber(fmt.Sprint(1000 + n))},
		ArrivalTime: time.UnixMilli(1_700_000_000_000 + int64(n)),
	}
}

// sink returns a sink with a handler; nil: the one that inserts the effects.
func (r *rig) sink(h handler) *sqlsink.Sink {
	r.Helper()
	if h == nil {
		h = r.effects
	}
	cfg := r.d.config(r.app, r.cfg)
	cfg.Handler = func(ctx context.Context, tx *sql.Tx, batch *sqlsink.Batch) error {
		return h(ctx, func(ctx context.Context, text string, args ...any) error {
			_, err := tx.ExecContext(ctx, text, args...)
			return err
		}, batch)
	}
	if r.d.pool == nil {
		s, err := sqlsink.New(cfg)
		must(r, err)
		return s
	}
	cfg.DB, cfg.Handler, cfg.Dialect = nil, nil, sqlsink.Dialect{}
	s, err := pgxsink.New(r.d.pool, func(ctx context.Context, tx pgx.Tx, b *sqlsink.Batch) error {
		return h(ctx, func(ctx context.Context, text string, args ...any) error {
			_, err := tx.Exec(ctx, text, args...)
			return err
		}, b)
	}, cfg)
	must(r, err)
	return s
}

// effects is the handler that inserts an effect for each record.
func (r *rig) effects(ctx context.Context, do statement, batch *sqlsink.Batch) error {
	for i := range batch.Records {
		if err := do(ctx, r.d.effect(), effectOf(r.app, batch, i)...); err != nil {
			return err
		}
	}
	return nil
}

func (r *rig) open(s *sqlsink.Sink) sink.Writer {
	r.Helper()
	w, err := s.Open(r.Context(), r.shard)
	must(r, err)
	return w
}

// batch returns the records [from, to) as a batch.
func (r *rig) batch(from, to int) sink.Batch {
	return sink.Batch{Records: r.records[from:to], Through: r.records[to-1].Position}
}

func (r *rig) write(w sink.Writer, from, to int) {
	r.Helper()
	if _, err := w.Write(r.Context(), r.batch(from, to)); err != nil {
		r.Fatalf("write [%d,%d): %v", from, to, err)
	}
}

// wantMoved checks that a writer has adopted the position of record last.
func (r *rig) wantMoved(w sink.Writer, err error, last int) {
	r.Helper()
	moved := new(sink.MovedError)
	if !errors.As(err, &moved) || moved.To.End != r.records[last].Position ||
		w.Committed().End != moved.To.End {
		r.Fatalf("got %v at %s, want a move to record %d", err, w.Committed().End, last)
	}
}

// wantEffects checks that exactly the given records have an effect, once and in order.
func (r *rig) wantEffects(want ...runnel.Record) {
	r.Helper()
	got, err := (&target{d: r.direct, app: r.app}).Records(r.Context(), r.shard)
	must(r, err)
	keys := func(all []runnel.Record) (keys []string) {
		for i := range all {
			keys = append(keys, all[i].Position.SortText()+" "+all[i].PartitionKey)
		}
		return keys
	}
	if !slices.Equal(keys(got), keys(want)) {
		r.Fatalf("%d effects, want %d:\n%v\n%v", len(got), len(want), keys(got), keys(want))
	}
}

// wantUnblamed checks that no failure has blamed a record.
func (r *rig) wantUnblamed() {
	r.Helper()
	for _, retry := range r.retries.list() {
		if retry.Blamed {
			r.Errorf("blamed: %v", retry.Err)
		}
	}
}

// blamed returns how many failures have blamed records.
func (r *rig) blamed() (n int) {
	for _, retry := range r.retries.list() {
		if retry.Blamed {
			n++
		}
	}
	return n
}

// exec changes the database from outside.
func (r *rig) exec(text string, args ...any) {
	r.Helper()
	_, err := r.direct.db.ExecContext(r.Context(), text, args...)
	must(r, err)
}

func (r *rig) count(text string, args ...any) (n int) {
	r.Helper()
	must(r, r.direct.db.QueryRowContext(r.Context(), text, args...).Scan(&n))
	return n
}

// until waits for a condition.
func until(t testing.TB, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("timed out: ", what)
		}
	}
}

// started runs a call in a goroutine of the test and returns its result.
func started(t testing.TB, call func() error) <-chan error {
	done := make(chan error, 1)
	var group sync.WaitGroup
	group.Go(func() { done <- call() })
	t.Cleanup(group.Wait)
	return done
}

// within returns the result of a call that has to come soon.
func within(t testing.TB, d time.Duration, done <-chan error) error {
	t.Helper()
	select {
	case err := <-done:
		return err
	case <-time.After(d):
		t.Fatalf("the call has not returned in %s", d)
		return nil
	}
}

// onceIn returns a handler that runs first in its first call only.
func onceIn(h handler, first func()) handler {
	var calls atomic.Int64
	return func(ctx context.Context, do statement, batch *sqlsink.Batch) error {
		err := h(ctx, do, batch)
		if calls.Add(1) == 1 {
			first()
		}
		return err
	}
}
