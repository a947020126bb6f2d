package sinktest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/shardid"
	"github.com/runnel-stream/runnel/sink"
)

// Gapper is a Target that can list its gaps. Run compares them. Any other target only has to accept
// the batches that have a gap.
type Gapper interface {
	Target
	// Gaps returns the shard's gaps that are committed, in their order. After and Before are
	// compared.
	Gaps(ctx context.Context, shard sink.Shard) ([]sink.Gap, error)
}

func testGaps(t *testing.T, target Target) {
	if _, ok := target.(Gapper); !ok {
		t.Log("the target is no Gapper: its gaps are not compared")
	}
	if err := checkGaps(t, target); err != nil {
		t.Error(err)
	}
}

// checkGaps runs each case on a shard of its own, and then writes gaps that contradict their batch.
func checkGaps(t *testing.T, target Target) error {
	var faults []error
	for n, c := range gapCases {
		id := runnel.ShardID(shardid.Of(uint32(n)))
		if err := c.check(t, target, id); err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", c.name, err))
		}
	}
	return errors.Join(append(faults, refusedGaps(t, target))...)
}

// gapCase is one place of a gap. Each step is a call:
//
//	w A B     writes the records [A, B)
//	g A B     writes them behind a gap
//	tip       writes a gap that nothing follows yet
//	flush     flushes
//	open      opens another writer
//	end       ends the shard
//	gone      ends the shard behind a gap
//	lose A B  has a writer that opened before all others write [A, B) behind a gap; its commit
//	          must fail on another one, and it makes the later calls
type gapCase struct {
	name  string
	steps []string
	kept  []int    // the records that the sink must hold
	gaps  []string // "AFTER BEFORE": numbers of records, start, end or tip
}

var gapCases = []gapCase{
	{
		"at the shard's beginning",
		[]string{"g 3 6", "flush"},
		[]int{3, 4, 5},
		[]string{"start 3"},
	},
	{
		"between two batches",
		[]string{"w 0 2", "flush", "g 5 7", "flush"},
		[]int{0, 1, 5, 6},
		[]string{"1 5"},
	},
	{
		"behind records that wait",
		[]string{"w 0 2", "g 4 6", "w 6 7", "g 9 10", "flush"},
		[]int{0, 1, 4, 5, 6, 9},
		[]string{"1 4", "6 9"},
	},
	{
		"before records that the reader drops",
		[]string{"w 0 1", "g 3 3", "flush", "w 4 6", "flush"},
		[]int{0, 4, 5},
		[]string{"0 3"},
	},
	{
		"at the end", []string{"w 0 2", "gone", "open"}, []int{0, 1}, []string{"1 end"},
	},
	{"at the end of an empty shard", []string{"gone", "open"}, nil, []string{"start end"}},
	{
		"at the beginning and at the end",
		[]string{"g 2 4", "gone"},
		[]int{2, 3},
		[]string{"start 2", "3 end"},
	},
	{
		"at the tip",
		[]string{"w 0 2", "flush", "tip", "flush", "open", "w 5 7", "flush"},
		[]int{0, 1, 5, 6},
		[]string{"1 tip"},
	},
	{
		"at the tip, then before records",
		[]string{"w 0 2", "tip", "g 5 7", "end"},
		[]int{0, 1, 5, 6},
		[]string{"1 tip", "tip 5"},
	},
	{
		"not committed",
		[]string{"w 0 2", "flush", "open", "w 2 4", "flush"},
		[]int{0, 1, 2, 3},
		nil,
	},
	{
		"of a writer that comes too late",
		[]string{"w 0 3", "flush", "lose 2 4", "w 3 4", "flush"},
		[]int{0, 1, 2, 3},
		nil,
	},
}

// gapRun is the run of one gapCase.
type gapRun struct {
	gapCase
	shard   sink.Shard
	target  Target
	records []runnel.Record
	writer  sink.Writer
	late    sink.Writer
	at, tip runnel.Position
	state   string                     // the reader's
	states  map[runnel.Position]string // the reader's states, by the position at the end of a batch
}

func (c gapCase) check(t *testing.T, target Target, id runnel.ShardID) error {
	b := newBench(t, target, 12)
	b.shard.ID = id
	for n := range b.records {
		b.records[n].ShardID = id
	}
	r := &gapRun{
		gapCase: c, shard: b.shard, target: target, records: b.records,
		states: map[runnel.Position]string{},
	}
	return r.run(t.Context())
}

func (r *gapRun) run(ctx context.Context) error {
	var err error
	if r.late, err = r.open(ctx); err != nil {
		return err
	}
	if r.writer, err = r.open(ctx); err != nil {
		return err
	}
	for n, step := range r.steps {
		if err := r.step(ctx, step); err != nil {
			return fmt.Errorf("step %d, %s: %w", n, step, err)
		}
	}
	return r.compare(ctx)
}

func (r *gapRun) open(ctx context.Context) (sink.Writer, error) {
	made, err := r.target.NewSink()
	if err != nil {
		return nil, err
	}
	return made.Open(ctx, r.shard)
}

func (r *gapRun) step(ctx context.Context, step string) error {
	var word string
	var from, to int
	_, _ = fmt.Sscanf(step, "%s %d %d", &word, &from, &to)
	switch word {
	case "w":
		return r.write(ctx, r.writer, sink.Batch{
			Records: r.records[from:to], Through: r.records[to-1].Position,
		})
	case "g":
		return r.write(ctx, r.writer, r.behindGap(from, to))
	case "tip":
		r.tip = runnel.Position{Sequence: r.at.Sequence, Sub: r.at.Sub + 1}
		return r.write(ctx, r.writer, sink.Batch{Through: r.tip, Gap: r.gap(r.tip)})
	case "lose":
		r.at = runnel.Start()
		batch := r.behindGap(from, to)
		_, err := r.late.Write(ctx, batch)
		if err == nil {
			_, err = r.late.Flush(ctx)
		}
		if moved := new(sink.MovedError); !errors.As(err, &moved) {
			return errors.Join(errors.New("want a MovedError"), err)
		}
		r.writer, r.at = r.late, r.late.Committed().End
		return nil
	case "open":
		var err error
		if r.writer, err = r.open(ctx); err != nil {
			return err
		}
		c := r.writer.Committed()
		if got := string(c.State); got != r.states[c.End] {
			return fmt.Errorf("the state at %s is %q, want %q", c.End, got, r.states[c.End])
		}
		return r.reached(c.End)
	case "flush":
		c, err := r.writer.Flush(ctx)
		if err != nil {
			return err
		}
		return r.reached(c.End)
	case "gone":
		batch := sink.Batch{Through: r.at, Gap: r.gap(runnel.End())}
		if err := r.write(ctx, r.writer, batch); err != nil {
			return err
		}
		fallthrough
	default: // end
		r.at = runnel.End()
		c, err := r.writer.End(ctx)
		if err != nil {
			return err
		}
		return r.reached(c.End)
	}
}

func (r *gapRun) gap(before runnel.Position) *sink.Gap {
	return &sink.Gap{After: r.at, Before: before, Reason: "a test"}
}

// behindGap returns a batch of the records [from, to) behind a gap. If there are none, the reader
// has dropped the record at from.
func (r *gapRun) behindGap(from, to int) sink.Batch {
	first := r.records[from].Position
	return sink.Batch{
		Records: r.records[from:to], Through: r.records[max(from, to-1)].Position,
		Gap: r.gap(runnel.Position{Sequence: first.Sequence}),
	}
}

// write writes a batch. As a reader does, it flushes before a gap, and its State always returns the
// state of the newest batch.
func (r *gapRun) write(ctx context.Context, w sink.Writer, batch sink.Batch) error {
	if batch.Gap != nil {
		if _, err := w.Flush(ctx); err != nil {
			return err
		}
	}
	r.state = "behind " + batch.Through.String()
	batch.State = func() []byte { return []byte(r.state) }
	_, err := w.Write(ctx, batch)
	r.at = batch.Through
	r.states[r.at], r.states[runnel.End()] = r.state, r.state
	return err
}

func (r *gapRun) reached(end runnel.Position) error {
	if end != r.at {
		return fmt.Errorf("committed up to %s, want %s", end, r.at)
	}
	return nil
}

// compare checks the sink's records and gaps.
func (r *gapRun) compare(ctx context.Context) error {
	var want []item
	for _, n := range r.kept {
		want = append(want, item{record: r.records[n]})
	}
	got, err := r.target.Records(ctx, r.shard)
	if err == nil {
		err = compare(got, want)
	}
	if err != nil {
		return err
	}
	gapper, ok := r.target.(Gapper)
	if !ok {
		return nil
	}
	gaps, err := gapper.Gaps(ctx, r.shard)
	if err != nil {
		return err
	}
	var texts []string
	for _, gap := range gaps {
		texts = append(texts, r.name(gap.After)+" "+r.name(gap.Before))
	}
	if !slices.Equal(texts, r.gaps) {
		return fmt.Errorf("the gaps are %q, want %q", texts, r.gaps)
	}
	return nil
}

func (r *gapRun) name(at runnel.Position) string {
	for n := range r.records {
		if r.records[n].Position == at {
			return fmt.Sprint(n)
		}
	}
	if at == r.tip && at != runnel.Start() {
		return "tip"
	}
	return at.String()
}

func refusedGaps(t *testing.T, target Target) error {
	b := newBench(t, target, 8)
	b.shard.ID = "shardId-000000000099"
	for n := range b.records {
		b.records[n].ShardID = b.shard.ID
	}
	var faults []error
	at := func(n int) runnel.Position { return b.records[n].Position }
	for name, batch := range map[string]sink.Batch{
		"of another place": {
			Records: b.records[4:6], Through: at(5),
			Gap: &sink.Gap{After: at(0), Before: at(4)},
		},
		"beyond a record": {
			Records: b.records[4:6], Through: at(5),
			Gap: &sink.Gap{After: at(1), Before: at(5)},
		},
		"beyond the batch": {Through: at(4), Gap: &sink.Gap{After: at(1), Before: at(6)}},
		"to the end, and records": {
			Records: b.records[4:6], Through: at(5),
			Gap: &sink.Gap{After: at(1), Before: runnel.End()},
		},
	} {
		w := b.open(sink.Committed{})
		if w.Committed().End == runnel.Start() {
			b.write(w, 0, 2)
			b.flush(w)
		}
		if _, err := w.Write(t.Context(), batch); !errors.Is(err, sink.ErrOutOfOrder) {
			fault := fmt.Errorf("a gap %s: want ErrOrder", name)
			faults = append(faults, errors.Join(fault, err))
		}
	}
	b.wantRecords(2)
	return errors.Join(faults...)
}

// testArrivals writes records with arrival times that step back, as after a correction of the
// stream's clock: positions alone make the order.
func testArrivals(t *testing.T, target Target) {
	b := newBench(t, target, 30)
	for n := range b.records {
		switch {
		case n >= 20:
			b.records[n].ArrivalTime = created.Add(-48 * time.Hour)
		case n%5 == 4:
			b.records[n].ArrivalTime = created.Add(-time.Hour)
		}
	}
	w := b.open(sink.Committed{})
	var row sink.Committed
	for n := 0; n < 30; n += 6 {
		b.write(w, n, n+6)
		row = b.flush(w)
		b.wantEnd(row, b.records[n+5].Position)
	}
	b.wantEnd(b.open(row).Committed(), b.records[29].Position)
	b.end(w)
	b.wantRecords(30)
}

// testAhead opens a shard with a checkpoint ahead of the sink, as after a use with another target:
// the sink refuses it, or goes on from its own end. It never leaves a hole.
func testAhead(t *testing.T, target Target) {
	b := newBench(t, target, 9)
	for _, standing := range []int{0, 3} {
		if standing > 0 {
			w := b.open(sink.Committed{})
			b.write(w, 0, standing)
			b.flush(w)
		}
		for _, end := range []runnel.Position{b.records[6].Position, runnel.End()} {
			shard := b.shard
			shard.Checkpoint = end
			made, err := target.NewSink()
			if err != nil {
				t.Fatal(err)
			}
			w, err := made.Open(t.Context(), shard)
			if err != nil {
				continue
			}
			want := runnel.Start()
			if standing > 0 {
				want = b.records[standing-1].Position
			}
			b.wantEnd(w.Committed(), want)
		}
		b.wantRecords(standing)
	}
}
