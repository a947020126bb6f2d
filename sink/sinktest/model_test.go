package sinktest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/sink"
	"github.com/runnel-stream/runnel/sink/sinktest"
)

// model is a sink in memory: the chain of links without a file or a format. Its flaws are
// mistakes that sinks have made; the suite must find each one.
type model struct {
	mu    sync.Mutex
	links map[string]*link
	flaw  flaw
	nonce int
	puts  int
	late  []func() // puts whose caller has gone, still under way
	calm  bool     // no put is late
}

type flaw string

const (
	none            flaw = ""
	keyByFirst      flaw = "links are named by their first record"
	keyByEnd        flaw = "links are named by their end"
	overwrite       flaw = "a put replaces what stands there"
	mineByWriter    flaw = "a lost answer is known by the writer, not the attempt"
	trustCheckpoint flaw = "the checkpoint is taken for the tip"
	keepOnMove      flaw = "what was written is kept after another's commit"
	endAtLast       flaw = "a link claims more than it holds"
	forget          flaw = "a crash loses the last link"
)

type link struct {
	shard           runnel.ShardID
	previous, end   runnel.Position
	records         []runnel.Record
	writer, attempt int
}

func (m *model) name(stream string, l *link) string {
	at := l.previous
	switch {
	case m.flaw == keyByFirst && len(l.records) > 0:
		at = l.records[0].Position
	case m.flaw == keyByFirst || m.flaw == keyByEnd:
		at = l.end
	}
	return stream + "/" + string(l.shard) + "/" + at.Key()
}

// walk returns the end of the chain; by a listing, where names do not lead from one to another.
func (m *model) walk(shard sink.Shard) runnel.Position {
	at := runnel.Start
	if m.flaw == keyByFirst || m.flaw == keyByEnd {
		for name, l := range m.links {
			if name == m.name(shard.Stream, l) && l.shard == shard.ID && at.Less(l.end) {
				at = l.end
			}
		}
		return at
	}
	for at != runnel.End {
		l := m.links[m.name(shard.Stream, &link{shard: shard.ID, previous: at})]
		if l == nil || !at.Less(l.end) {
			break
		}
		at = l.end
	}
	return at
}

func (m *model) NewSink() (sink.Sink, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.nonce++
	return &modelSink{model: m, id: m.nonce}, nil
}

func (m *model) Records(_ context.Context, shard sink.Shard) ([]runnel.Record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.arrive()
	prefix := shard.Stream + "/" + string(shard.ID) + "/"
	var names []string
	for name := range m.links {
		if len(name) > len(prefix) && name[:len(prefix)] == prefix {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	var records []runnel.Record
	for _, name := range names {
		records = append(records, m.links[name].records...)
	}
	return records, nil
}

// Crash loses nothing but with the flaw.
func (m *model) Crash() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	var names []string
	for name := range m.links {
		names = append(names, name)
	}
	slices.Sort(names)
	if m.flaw == forget && len(names) > 0 {
		delete(m.links, names[len(names)-1])
	}
	return nil
}

// arrive lets late puts happen.
func (m *model) arrive() {
	for _, put := range m.late {
		put()
	}
	m.late = nil
}

var errTimeout = errors.New("timed out")

// put creates a link; ok is false if another has its name. Now and then it comes late.
func (m *model) put(stream string, l *link) (ok bool, err error) {
	name := m.name(stream, l)
	create := func() bool {
		if m.links[name] != nil && m.flaw != overwrite {
			return false
		}
		m.links[name] = l
		return true
	}
	if m.puts++; m.puts%13 == 0 && !m.calm {
		m.late = append(m.late, func() { create() })
		return false, errTimeout
	}
	if m.puts%5 == 0 {
		m.arrive()
	}
	if create() {
		return true, nil
	}
	there := m.links[name]
	if m.flaw == mineByWriter {
		return there.writer == l.writer, nil
	}
	return there.writer == l.writer && there.attempt == l.attempt, nil
}

type modelSink struct {
	*model
	id int
}

func (m *modelSink) Open(ctx context.Context, shard sink.Shard) (sink.Writer, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if shard.Checkpoint != runnel.End && !shard.Checkpoint.Sequence.IsNumber() {
		shard.Checkpoint = runnel.Start
	}
	at := m.walk(shard)
	if m.flaw == trustCheckpoint {
		at = shard.Checkpoint
	}
	return &modelWriter{modelSink: m, shard: shard, tip: at, through: at}, nil
}

type modelWriter struct {
	*modelSink
	shard        sink.Shard
	tip, through runnel.Position
	records      []runnel.Record
	closed       bool
}

func (w *modelWriter) Committed() sink.Committed { return sink.Committed{End: w.tip} }

func (w *modelWriter) Write(ctx context.Context, batch sink.Batch) (sink.Committed, error) {
	records, through := batch.Records, batch.Through
	if w.closed {
		return sink.Committed{}, errors.New("closed")
	}
	at := w.through
	for _, record := range records {
		if !at.Less(record.Position) || record.ShardID != w.shard.ID {
			w.closed = true
			return sink.Committed{}, sink.ErrOrder
		}
		at = record.Position
	}
	if through.Less(at) {
		w.closed = true
		return sink.Committed{}, sink.ErrOrder
	}
	w.through = through
	w.records = append(w.records, records...)
	if len(w.records) < 9 {
		return w.Committed(), nil
	}
	return w.commit(ctx, w.through)
}

func (w *modelWriter) Flush(ctx context.Context) (sink.Committed, error) {
	if len(w.records) == 0 && !w.closed {
		return w.Committed(), nil
	}
	return w.commit(ctx, w.through)
}

func (w *modelWriter) End(ctx context.Context) (sink.Committed, error) {
	if w.tip == runnel.End && !w.closed {
		return w.Committed(), nil
	}
	return w.commit(ctx, runnel.End)
}

func (w *modelWriter) Close() error { w.closed = true; return nil }

func (w *modelWriter) commit(
	ctx context.Context, end runnel.Position,
) (committed sink.Committed, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err = ctx.Err(); err == nil && w.closed {
		err = errors.New("closed")
	}
	if err != nil {
		w.closed = true
		return sink.Committed{}, err
	}
	w.nonce++
	l := &link{
		shard: w.shard.ID, previous: w.tip, end: end, writer: w.id, attempt: w.nonce,
		records: slices.Clone(w.records),
	}
	if w.flaw == endAtLast && len(l.records) > 4 {
		l.records = l.records[:4]
	}
	mine, err := w.put(w.shard.Stream, l)
	if err != nil {
		w.closed = true
		return sink.Committed{}, err
	}
	if mine {
		w.tip, w.through, w.records = end, end, nil
		return w.Committed(), nil
	}
	w.tip = w.walk(w.shard)
	w.through = w.tip
	if w.flaw != keepOnMove {
		w.records = nil
	}
	return sink.Committed{}, &sink.MovedError{To: w.Committed()}
}

func newModel(f flaw) *model { return &model{links: map[string]*link{}, flaw: f} }

// TestModel shows that a sink that does it right passes.
func TestModel(t *testing.T) {
	for seed := range uint64(300 * sinktest.Soak()) {
		if err := simulate(seed, none); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
	t.Logf("soak: %d seeds", 300*sinktest.Soak())
}

// TestRun runs the suite itself.
func TestRun(t *testing.T) {
	sinktest.Run(t, func(*testing.T) sinktest.Target {
		m := newModel(none)
		m.calm = true
		return m
	})
}

// TestFlaws shows that the simulation can fail: each mistake does damage that it finds.
func TestFlaws(t *testing.T) {
	const seeds = 200
	for _, f := range []flaw{
		keyByFirst, keyByEnd, overwrite, mineByWriter, trustCheckpoint,
		keepOnMove, endAtLast, forget,
	} {
		t.Run(string(f), func(t *testing.T) {
			for seed := range uint64(seeds) {
				if err := simulate(seed, f); err != nil {
					t.Logf("found after %d runs: %v", seed, err)
					return
				}
			}
			t.Errorf("the simulation has not found it in %d runs", seeds)
		})
	}
}

func simulate(seed uint64, f flaw) error {
	_, err := sinktest.Simulate(context.Background(), newModel(f), sinktest.Plan{
		Seed: seed, Tolerate: func(err error) bool { return errors.Is(err, errTimeout) },
	})
	if err != nil {
		return fmt.Errorf("seed %d: %w", seed, err)
	}
	return nil
}
