package sqlsink_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"math/rand/v2"
	"testing"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/sink"
	"github.com/runnel-stream/runnel/sink/sinktest"
	"github.com/runnel-stream/runnel/sink/sqlsink"
)

// TestConformance runs the suite on each database.
func TestConformance(t *testing.T) {
	each(t, func(t *testing.T, d *database) {
		sinktest.Run(t, func(*testing.T) sinktest.Target { return d.target() })
	})
}

// Gaps implements sinktest.Gapper.
func (t *target) Gaps(ctx context.Context, shard sink.Shard) ([]sink.Gap, error) {
	text, err := t.d.gapsOf(ctx, t.app, shard)
	if err != nil || text == "" {
		return nil, err
	}
	var kept []struct{ After, Before, Reason string }
	if err := json.Unmarshal([]byte(text), &kept); err != nil {
		return nil, err
	}
	var gaps []sink.Gap
	for _, k := range kept {
		after, err := runnel.ParsePosition(k.After)
		if err != nil {
			return nil, err
		}
		before, err := runnel.ParsePosition(k.Before)
		if err != nil {
			return nil, err
		}
		gaps = append(gaps, sink.Gap{After: after, Before: before, Reason: k.Reason})
	}
	return gaps, nil
}

// faultsOf makes a target fail at random.
func faultsOf(target *target, seed uint64) *faults {
	f := &faults{rng: rand.New(rand.NewPCG(seed, 9))}
	target.wrap = func(c sqlsink.Client) sqlsink.Client { return faulty{c, f} }
	return f
}

// TestFaults has connections end in COMMIT and before it, and transactions fail at random.
func TestFaults(t *testing.T) {
	eachSQL(t, func(t *testing.T, d *database) { // the faults are in a client over database/sql
		cut, conflicts := 0, 0
		for seed := range uint64(12 * sinktest.Soak()) {
			target := d.target()
			f := faultsOf(target, seed)
			_, err := sinktest.Simulate(t.Context(), target, sinktest.Plan{Seed: seed, Records: 10})
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			cut += f.cut
			conflicts += f.conflict
		}
		t.Logf("soak: %d seeds, %d connections cut, %d transactions failed",
			12*sinktest.Soak(), cut, conflicts)
		if cut == 0 || conflicts == 0 {
			t.Error("the simulation has not met what it is for")
		}
	})
}

// effectsFirst commits the handler's effects before the position.
type effectsFirst struct{ sqlsink.Client }

func (c effectsFirst) Begin(ctx context.Context, l sql.IsolationLevel) (sqlsink.Tx, error) {
	tx, err := c.Client.Begin(ctx, l)
	return effectsFirstTx{tx, c.Client}, err
}

type effectsFirstTx struct {
	sqlsink.Tx
	c sqlsink.Client
}

func (t effectsFirstTx) Handle(ctx context.Context, batch *sqlsink.Batch) error {
	own, err := t.c.Begin(ctx, sql.LevelDefault)
	if err != nil {
		return err
	}
	if err := own.Handle(ctx, batch); err != nil {
		own.Rollback(ctx)
		return err
	}
	return own.Commit(ctx)
}

// positionApart keeps the position in another transaction than the effects.
type positionApart struct{ sqlsink.Client }

func (c positionApart) Begin(ctx context.Context, l sql.IsolationLevel) (sqlsink.Tx, error) {
	tx, err := c.Client.Begin(ctx, l)
	return positionApartTx{tx, c.Client}, err
}

type positionApartTx struct {
	sqlsink.Tx
	c sqlsink.Client
}

func (t positionApartTx) Exec(ctx context.Context, text string, args ...any) (int64, error) {
	own, err := t.c.Begin(ctx, sql.LevelDefault)
	if err != nil {
		return 0, err
	}
	n, err := own.Exec(ctx, text, args...)
	if err != nil {
		own.Rollback(ctx)
		return n, err
	}
	return n, own.Commit(ctx)
}

// TestControls shows that the suite finds the two mistakes that a sink over SQL can make.
func TestControls(t *testing.T) {
	t.Parallel()
	d := postgres(t)
	for name, wrap := range map[string]func(sqlsink.Client) sqlsink.Client{
		"the effects are committed first":             func(c sqlsink.Client) sqlsink.Client { return effectsFirst{c} },
		"the position is kept in another transaction": func(c sqlsink.Client) sqlsink.Client { return positionApart{c} },
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(100) {
				target := d.target()
				f := &faults{rng: rand.New(rand.NewPCG(seed, 9))}
				target.wrap = func(c sqlsink.Client) sqlsink.Client {
					return faulty{wrap(c), f}
				}
				_, err := sinktest.Simulate(t.Context(), target, sinktest.Plan{
					Seed: seed, Records: 10, Blind: true,
				})
				if err != nil {
					t.Logf("found after %d runs: %.200v", seed, err)
					return
				}
			}
			t.Error("it has done no damage")
		})
	}
}
