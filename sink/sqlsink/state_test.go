package sqlsink_test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/runnel-stream/runnel/aggregate"
	"github.com/runnel-stream/runnel/sink"
	"github.com/runnel-stream/runnel/sink/sqlsink"
)

// weighing is a Client that counts the bytes of states and changes that are written.
type weighing struct {
	sqlsink.Client
	bytes, commits *atomic.Int64
}

func (c weighing) Begin(ctx context.Context, level sql.IsolationLevel) (sqlsink.Tx, error) {
	tx, err := c.Client.Begin(ctx, level)
	return weighingTx{tx, c}, err
}

type weighingTx struct {
	sqlsink.Tx
	of weighing
}

func (t weighingTx) Exec(ctx context.Context, text string, args ...any) (int64, error) {
	for _, arg := range args {
		if b, ok := arg.([]byte); ok {
			t.of.bytes.Add(int64(len(b)))
		}
	}
	return t.Tx.Exec(ctx, text, args...)
}

func (t weighingTx) Commit(ctx context.Context) error {
	t.of.commits.Add(1)
	return t.Tx.Commit(ctx)
}

// reader is a reader of units of many lanes.
type reader struct {
	filter *aggregate.Filter
	rng    *rand.Rand
	units  uint64
}

func newReader(t *testing.T, state []byte) *reader {
	t.Helper()
	r := &reader{filter: new(aggregate.Filter), rng: rand.New(rand.NewPCG(1, 2))}
	if state != nil {
		must(t, r.filter.UnmarshalBinary(state))
	}
	r.filter.Track()
	return r
}

// read admits units, of one of the lanes each.
func (r *reader) read(units, lanes int) {
	for range units {
		r.units++
		var lane aggregate.Lane
		binary.BigEndian.PutUint64(lane[:], uint64(1+r.rng.IntN(lanes))<<20)
		r.filter.Admit(aggregate.Unit{
			Producer: aggregate.ProducerID{byte(r.units % 3)}, Number: r.units, Low: 1,
		}, lane, time.UnixMilli(1_700_000_000_000+int64(r.units)))
	}
}

func (r *reader) state() []byte {
	state, _ := r.filter.MarshalBinary() // it returns no error
	return state
}

func (r *reader) delta() []byte {
	delta, _ := r.filter.Delta().MarshalBinary() // it returns no error
	return delta
}

// A large state is folded from a whole one and the changes since. It is exactly the reader's, over
// take-overs, and the commits write a small part of it.
func TestLargeState(t *testing.T) {
	eachSQL(t, func(t *testing.T, d *database) {
		const batches = 300
		r := newRig(t, d, batches)
		var written, commits atomic.Int64
		open := func() sink.Writer {
			cfg := d.config(r.app, r.cfg)
			cfg.Client = weighing{sqlsink.NewClient(cfg.DB, cfg.Handler), &written, &commits}
			cfg.DB, cfg.Handler = nil, nil
			s, err := sqlsink.New(cfg)
			must(t, err)
			return r.open(s)
		}
		w, read := open(), newReader(t, nil)
		read.read(20_000, 5000)
		before := w
		for n := range batches {
			read.read(20, 5000)
			batch := r.batch(n, n+1)
			batch.State, batch.Delta = read.state, read.delta()
			_, err := w.Write(t.Context(), batch)
			must(t, err)
			if n%60 == 59 || n == batches-1 {
				before, w = w, open()
				if !bytes.Equal(w.Committed().State, read.state()) {
					t.Fatalf("after batch %d: not the reader's state", n)
				}
				units, rng := read.units, read.rng
				read = newReader(t, w.Committed().State)
				read.units, read.rng = units, rng
			}
		}
		_, err := w.End(t.Context())
		must(t, err)
		_, err = before.End(t.Context())
		moved := new(sink.MovedError)
		if !errors.As(err, &moved) || !bytes.Equal(moved.To.State, read.state()) {
			t.Errorf("%v: not the reader's state", err)
		}
		each, whole := written.Load()/commits.Load(), int64(len(read.state()))
		t.Logf("a state of %d bytes; each commit writes %d bytes of it", whole, each)
		if each > whole/8 || whole < 50_000 {
			t.Errorf("a state of %d bytes; each commit writes %d bytes of it", whole, each)
		}
	})
}

// An idle shard collects changes without progress. They do not grow with the time.
func TestIdleChanges(t *testing.T) {
	eachSQL(t, func(t *testing.T, d *database) {
		r := newRig(t, d, 3)
		r.cfg.Every = time.Hour
		var written, commits atomic.Int64
		cfg := d.config(r.app, r.cfg)
		cfg.Client = weighing{sqlsink.NewClient(cfg.DB, cfg.Handler), &written, &commits}
		cfg.DB, cfg.Handler = nil, nil
		s, err := sqlsink.New(cfg)
		must(t, err)
		w, read := r.open(s), newReader(t, nil)
		read.read(5000, 1000)
		write := func(batch sink.Batch) {
			t.Helper()
			batch.State, batch.Delta = read.state, read.delta()
			_, err := w.Write(t.Context(), batch)
			must(t, err)
		}
		write(r.batch(0, 1))
		for n := range 20_000 { // half an hour, with units that come again now and then
			if n%1000 == 0 {
				read.read(1, 1000)
			}
			write(sink.Batch{Through: r.records[0].Position})
		}
		written.Store(0)
		write(r.batch(1, 2))
		if n := written.Load(); n > 5000 {
			t.Errorf("the commit writes %d bytes of the state", n)
		}
		if !bytes.Equal(r.open(s).Committed().State, read.state()) {
			t.Error("not the reader's state")
		}
	})
}
