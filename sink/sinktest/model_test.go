package sinktest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/aggregate"
	"github.com/runnel-stream/runnel/sink"
	"github.com/runnel-stream/runnel/sink/sinktest"
)

// model is a sink in memory: the chain of links without a file or a format. With changes it stores
// the changes of states, and a whole state in every fourth link. Its flaws are mistakes of real
// sinks; the suite must find each one.
type model struct {
	changes bool

	mu     sync.Mutex
	links  map[string]*link
	beside map[string][]byte // the states that stateBeside stores
	flaw   flaw
	nonce  int
	puts   int
	late   []func() // puts under way after their caller has returned
	calm   bool     // no put is late
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

	stateBeside    flaw = "the newest state is kept beside the links"
	stateOfNewest  flaw = "an older batch is committed with the newest one's state"
	stateOfFirst   flaw = "a link has the state of its first batch"
	stateKept      flaw = "the state is not adopted with another's commit"
	stateEnds      flaw = "the last link has no state"
	parentsSwapped flaw = "the parents' states are in another order"
	parentsOpen    flaw = "a parent's state is that of its first link"
	cutInBatch     flaw = "a commit ends inside of a batch"
	recordsOnly    flaw = "progress without a record is not committed"
	stateLate      flaw = "the state is asked for when the next batch is there"

	// With changes.
	changeOfLast  flaw = "of several batches' changes only the last one is kept"
	changeKept    flaw = "changes that were not committed are kept after another's commit"
	changeUnknown flaw = "no change is taken for none where it is not known"
	changeAlone   flaw = "a restart takes the last change for the state"
	wholeStale    flaw = "a whole state is that of a mirror that has missed another's commits"
)

// Mistakes with gaps; TestGapFlaws finds them.
const (
	gapForgotten flaw = "a gap is not kept"
	gapOnMove    flaw = "a gap is kept after another's commit"
	gapNoEnd     flaw = "the last link has no gap"
	gapNoTip     flaw = "a gap without records is not committed"
	gapUnchecked flaw = "a gap is not compared with its batch"
	gapState     flaw = "the commit of a gap has the state from before it"
)

type link struct {
	shard           runnel.ShardID
	previous, end   runnel.Position
	records         []runnel.Record
	state           []byte
	changed         bool // the link has changes instead of the state
	changes         [][]byte
	gaps            []sink.Gap
	writer, attempt int
}

// fold returns the state at a link, made of the one before.
func (l *link) fold(state []byte) []byte {
	if !l.changed {
		return l.state
	}
	return folded(state, l.changes)
}

func folded(state []byte, changes [][]byte) []byte {
	if len(changes) == 0 {
		return state
	}
	var filter aggregate.Filter
	if len(state) > 0 {
		if err := filter.UnmarshalBinary(state); err != nil {
			panic(err)
		}
	}
	for _, change := range changes {
		var delta aggregate.Delta
		if err := delta.UnmarshalBinary(change); err != nil {
			panic(err)
		}
		filter.Apply(&delta)
	}
	state, _ = filter.MarshalBinary()
	return state
}

func (m *model) name(stream string, l *link) string {
	at := l.previous
	switch {
	case m.flaw == keyByFirst && len(l.records) > 0:
		at = l.records[0].Position
	case m.flaw == keyByFirst || m.flaw == keyByEnd:
		at = l.end
	}
	return stream + "/" + string(l.shard) + "/" + at.SortText()
}

// walk returns the end of the chain, and its state. It uses a listing if a name does not lead to
// the next one.
func (m *model) walk(shard sink.Shard) (at runnel.Position, state []byte) {
	if m.flaw == keyByFirst || m.flaw == keyByEnd {
		for name, l := range m.links {
			if name == m.name(shard.Stream, l) && l.shard == shard.ID && at.Less(l.end) {
				at, state = l.end, l.fold(nil)
			}
		}
		return at, state
	}
	for at != runnel.End() {
		l := m.links[m.name(shard.Stream, &link{shard: shard.ID, previous: at})]
		if l == nil || !at.Less(l.end) {
			break
		}
		if m.flaw == changeAlone {
			state = nil
		}
		at, state = l.end, l.fold(state)
	}
	return at, state
}

// inherited returns the states at the ends of the parents' chains.
func (m *model) inherited(shard sink.Shard) (states [][]byte) {
	for _, id := range shard.Parents {
		parent := sink.Shard{Stream: shard.Stream, ID: id}
		at, state := m.walk(parent)
		if at != runnel.End() {
			state = nil
		}
		first := m.links[m.name(shard.Stream, &link{shard: id})]
		if m.flaw == parentsOpen && first != nil {
			state = first.fold(nil)
		}
		states = append(states, state)
	}
	if m.flaw == parentsSwapped {
		slices.Reverse(states)
	}
	return states
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

// Gaps implements sinktest.Gapper.
func (m *model) Gaps(_ context.Context, shard sink.Shard) (gaps []sink.Gap, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for at := runnel.Start(); at != runnel.End(); {
		l := m.links[m.name(shard.Stream, &link{shard: shard.ID, previous: at})]
		if l == nil {
			break
		}
		gaps, at = append(gaps, l.gaps...), l.end
	}
	return gaps, nil
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
	if shard.Checkpoint != runnel.End() && !shard.Checkpoint.Sequence.IsNumber() {
		shard.Checkpoint = runnel.Start()
	}
	at, state := m.walk(shard)
	if m.flaw == trustCheckpoint {
		at = shard.Checkpoint
	}
	if beside, some := m.beside[m.key(shard)]; some && m.flaw == stateBeside {
		state = beside
	}
	w := &modelWriter{modelSink: m, shard: shard}
	w.adopt(at, state)
	if at == runnel.Start() {
		w.parents = m.inherited(shard)
	}
	return w, nil
}

func (m *model) key(shard sink.Shard) string { return shard.Stream + "/" + string(shard.ID) }

type modelWriter struct {
	*modelSink
	shard   sink.Shard
	tip     sink.Committed
	parents [][]byte
	closed  bool

	through runnel.Position
	state   sink.State
	records []runnel.Record
	gaps    []sink.Gap
	batches int

	pending [][]byte // the changes since the tip
	unknown bool     // a batch has an unknown change
	links   int      // with changes, since one with a whole state
	mirror  []byte   // the state by wholeStale's mistake
}

// adopt goes on from a tip that was found.
func (w *modelWriter) adopt(end runnel.Position, state []byte) {
	w.state = func() []byte { return state }
	w.links = 0
	if w.mirror == nil {
		w.mirror = state
	}
	w.stand(end, state)
}

func (w *modelWriter) stand(end runnel.Position, state []byte) {
	w.tip = sink.Committed{End: end, State: state}
	w.through, w.batches = end, 0
	if w.unknown = end == runnel.Start(); w.flaw != changeKept {
		w.pending = nil
	}
}

func (w *modelWriter) Committed() sink.Committed {
	c := w.tip
	if c.End == runnel.Start() {
		c.Parents = w.parents
	}
	return c
}

func (w *modelWriter) Write(ctx context.Context, batch sink.Batch) (sink.Committed, error) {
	if w.closed {
		return sink.Committed{}, errors.New("closed")
	}
	if !w.follows(batch) {
		w.closed = true
		return sink.Committed{}, sink.ErrOutOfOrder
	}
	w.mu.Lock()
	w.beside[w.key(w.shard)] = batch.State.Bytes()
	w.mu.Unlock()
	w.keepGap(batch)
	if w.flaw == changeOfLast {
		w.pending = nil
	}
	if w.pending = append(w.pending, batch.Delta); batch.Delta == nil {
		w.unknown = w.flaw != changeUnknown
		w.pending = w.pending[:len(w.pending)-1]
	} else if w.flaw == wholeStale {
		w.mirror = folded(w.mirror, [][]byte{batch.Delta})
	}
	switch {
	case (w.flaw == stateOfNewest || w.flaw == stateLate) && len(w.records) > 5:
		if w.flaw == stateOfNewest {
			w.state = batch.State
		}
		if c, err := w.commit(ctx, w.through); err != nil {
			return c, err
		}
	case w.flaw == cutInBatch && len(w.records)+len(batch.Records) > 9:
		n := max(0, 9-len(w.records))
		w.records = append(w.records, batch.Records[:n]...)
		w.state = batch.State
		if c, err := w.commit(ctx, w.records[len(w.records)-1].Position); err != nil {
			return c, err
		}
		batch.Records = batch.Records[n:]
	}
	w.through = batch.Through
	if w.flaw != stateOfFirst && (w.flaw != gapState || batch.Gap == nil) {
		w.state = batch.State
	} else if w.flaw == stateOfFirst && w.batches == 0 {
		first := batch.State.Bytes()
		w.state = func() []byte { return first }
	}
	w.batches++
	w.records = append(w.records, batch.Records...)
	if len(w.records) < 9 && (w.batches < 12 || !w.progress()) {
		return w.Committed(), nil
	}
	return w.commit(ctx, w.through)
}

func (w *modelWriter) keepGap(batch sink.Batch) {
	switch {
	case batch.Gap == nil, w.flaw == gapForgotten:
	case w.flaw == gapNoTip && len(batch.Records) == 0 && batch.Gap.Before != runnel.End():
	default:
		w.gaps = append(w.gaps, *batch.Gap)
	}
}

func (w *modelWriter) follows(batch sink.Batch) bool {
	at := w.through
	for _, record := range batch.Records {
		if !at.Less(record.Position) || record.ShardID != w.shard.ID {
			return false
		}
		at = record.Position
	}
	if gap := batch.Gap; gap != nil && w.flaw != gapUnchecked {
		first := batch.Through
		if len(batch.Records) > 0 {
			first = batch.Records[0].Position
		}
		atEnd := gap.Before == runnel.End() && first == w.through
		if gap.After != w.through || first.Less(gap.Before) && !atEnd {
			return false
		}
	}
	return !batch.Through.Less(at)
}

// progress reports whether there is progress to commit.
func (w *modelWriter) progress() bool {
	return len(w.records) > 0 || w.tip.End.Less(w.through) && w.flaw != recordsOnly
}

func (w *modelWriter) Flush(ctx context.Context) (sink.Committed, error) {
	if !w.progress() && !w.closed {
		return w.Committed(), nil
	}
	return w.commit(ctx, w.through)
}

func (w *modelWriter) End(ctx context.Context) (sink.Committed, error) {
	if w.tip.End == runnel.End() && !w.closed {
		return w.Committed(), nil
	}
	return w.commit(ctx, runnel.End())
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
		shard: w.shard.ID, previous: w.tip.End, end: end, writer: w.id, attempt: w.nonce,
		records: slices.Clone(w.records), gaps: w.gaps,
		changed: w.changes && !w.unknown && w.links < 3,
	}
	if w.flaw == gapNoEnd && end == runnel.End() {
		l.gaps = nil
	}
	switch {
	case l.changed:
		l.changes = slices.Clone(w.pending)
	case w.flaw == wholeStale:
		l.state = w.mirror
	default:
		l.state = w.state.Bytes()
	}
	if w.flaw == endAtLast && len(l.records) > 4 {
		l.records = l.records[:4]
	}
	if w.flaw == stateEnds && end == runnel.End() {
		l.state, l.changes, l.changed = nil, nil, false
	}
	mine, err := w.put(w.shard.Stream, l)
	if err != nil {
		w.closed = true
		return sink.Committed{}, err
	}
	if mine {
		if w.links++; !l.changed {
			w.links = 0
		}
		w.stand(end, l.state)
		w.records, w.gaps = nil, nil
		return w.Committed(), nil
	}
	at, state := w.walk(w.shard)
	if w.flaw == stateKept {
		state = w.state.Bytes()
	}
	w.adopt(at, state)
	if w.flaw != keepOnMove {
		w.records = nil
	}
	if w.flaw != gapOnMove {
		w.gaps = nil
	}
	return sink.Committed{}, &sink.MovedError{To: w.Committed()}
}

func newModel(f flaw, changes bool) *model {
	return &model{
		links: map[string]*link{}, beside: map[string][]byte{}, flaw: f, changes: changes,
	}
}

// TestModel shows that a correct sink passes, whether it stores states or changes.
func TestModel(t *testing.T) {
	for seed := range uint64(300 * sinktest.Soak()) {
		for _, blind := range []bool{false, true} {
			for _, changes := range []bool{false, true} {
				plan := sinktest.Plan{Seed: seed, Blind: blind}
				if err := simulate(plan, none, changes); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	t.Logf("soak: %d seeds", 300*sinktest.Soak())
}

// TestRun runs the suite itself.
func TestRun(t *testing.T) {
	for _, changes := range []bool{false, true} {
		t.Run(fmt.Sprintf("changes %v", changes), func(t *testing.T) {
			sinktest.Run(t, func(*testing.T) sinktest.Target {
				m := newModel(none, changes)
				m.calm = true
				return m
			})
		})
	}
}

// TestFlaws shows that the simulation can fail: it finds each mistake.
func TestFlaws(t *testing.T) {
	for _, f := range []flaw{
		keyByFirst, keyByEnd, overwrite, mineByWriter, trustCheckpoint,
		keepOnMove, endAtLast, forget,
		stateBeside, stateOfNewest, stateOfFirst, stateKept, stateEnds, stateLate,
		parentsSwapped, parentsOpen, cutInBatch, recordsOnly,
	} {
		t.Run(string(f), func(t *testing.T) { wantFound(t, sinktest.Plan{}, f, false) })
	}
	for _, f := range []flaw{
		overwrite, mineByWriter, keepOnMove, forget,
		stateOfNewest, stateKept, stateEnds, stateLate, cutInBatch,
		changeOfLast, changeKept, changeUnknown, changeAlone, wholeStale,
	} {
		t.Run("with changes, "+string(f), func(t *testing.T) {
			wantFound(t, sinktest.Plan{}, f, true)
		})
	}
}

// TestDamage shows why a state must be committed with its position: each mistake loses or doubles
// records.
func TestDamage(t *testing.T) {
	for _, f := range []flaw{
		stateBeside, stateOfNewest, stateOfFirst, stateKept, stateEnds, stateLate, parentsOpen,
		cutInBatch,
	} {
		t.Run(string(f), func(t *testing.T) {
			wantFound(t, sinktest.Plan{Blind: true}, f, false)
		})
	}
	for _, f := range []flaw{
		stateOfNewest, changeOfLast, changeKept, changeUnknown, changeAlone, wholeStale,
	} {
		t.Run("with changes, "+string(f), func(t *testing.T) {
			wantFound(t, sinktest.Plan{Blind: true}, f, true)
		})
	}
}

// TestGapFlaws shows that the cases with gaps find each mistake.
func TestGapFlaws(t *testing.T) {
	check := func(f flaw) error {
		m := newModel(f, false)
		m.calm = true
		return sinktest.CheckGaps(t, m)
	}
	if err := check(none); err != nil {
		t.Fatal(err)
	}
	for _, f := range []flaw{
		gapForgotten, gapOnMove, gapNoEnd, gapNoTip, gapUnchecked, gapState,
	} {
		if err := check(f); err == nil {
			t.Errorf("not found: %s", f)
		}
	}
}

func wantFound(t *testing.T, plan sinktest.Plan, f flaw, changes bool) {
	const seeds = 200
	for plan.Seed = range uint64(seeds) {
		if err := simulate(plan, f, changes); err != nil {
			t.Logf("found after %d runs: %.200v", plan.Seed, err)
			return
		}
	}
	t.Errorf("the simulation has not found it in %d runs", seeds)
}

func simulate(plan sinktest.Plan, f flaw, changes bool) (err error) {
	plan.Tolerate = func(err error) bool { return errors.Is(err, errTimeout) }
	defer func() { // of folded: a flawed sink has made an invalid state
		if found, ok := recover().(error); ok {
			err = found
		}
	}()
	_, err = sinktest.Simulate(context.Background(), newModel(f, changes), plan)
	if err != nil {
		return fmt.Errorf("seed %d: %w", plan.Seed, err)
	}
	return nil
}
