package sinktest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/sink"
)

// Plan is a simulation: a stream whose shards split and merge, and writers that are all alive
// on all of its shards all the time. Everything follows from the seed.
type Plan struct {
	Seed    uint64
	Writers int    // default 3
	Records int    // of a shard, on average; default 25
	Stream  string // default "orders"
	// Calm leaves out the faults: lost answers, stale checkpoints, cancelled calls, crashes.
	Calm bool
	// Tolerate says which errors the target makes up; the shard is opened again after them.
	// Others fail the simulation. Default: none.
	Tolerate func(error) bool
}

// Stats counts what a simulation has met.
type Stats struct {
	Opens, Writes, Moved, Lost, Stale, Cancelled, Crashes, Tolerated int
}

func (s *Stats) add(other Stats) {
	s.Opens += other.Opens
	s.Writes += other.Writes
	s.Moved += other.Moved
	s.Lost += other.Lost
	s.Stale += other.Stale
	s.Cancelled += other.Cancelled
	s.Crashes += other.Crashes
	s.Tolerated += other.Tolerated
}

// Simulate runs the plan on a target that has nothing of the plan's stream. An error says what
// the sink has lost, doubled, reordered or forgotten.
func Simulate(ctx context.Context, target Target, plan Plan) (Stats, error) {
	if plan.Writers == 0 {
		plan.Writers = 3
	}
	if plan.Records == 0 {
		plan.Records = 25
	}
	s := &simulation{
		plan: plan, target: target,
		rng: rand.New(rand.NewPCG(plan.Seed, 0x51)),
	}
	items := 0
	for _, source := range newTree(s.rng, plan.Stream, plan.Records, !plan.Calm) {
		s.shards = append(s.shards, &shardState{source: source})
		items += len(source.items)
	}
	if err := s.restart(); err != nil {
		return s.stats, err
	}
	limit := 2_000 + 40*items*plan.Writers
	for step := 0; !s.done(); step++ {
		if step > limit {
			return s.stats, fmt.Errorf("not done after %d steps", limit)
		}
		if err := s.step(ctx); err != nil {
			return s.stats, fmt.Errorf("step %d: %w", step, err)
		}
	}
	for range 10 * plan.Writers { // zombies go on when all is done
		if err := s.step(ctx); err != nil {
			return s.stats, fmt.Errorf("after the end: %w", err)
		}
	}
	return s.stats, s.check(ctx)
}

type simulation struct {
	plan   Plan
	target Target
	rng    *rand.Rand
	shards []*shardState
	fleet  []*worker
	stats  Stats
}

// shardState is a shard as the stream and the lease table know it.
type shardState struct {
	*source
	rows  []sink.Committed // what the lease row has held
	acked runnel.Position  // the furthest end that any writer has returned
	ended bool
}

type worker struct {
	sink    sink.Sink
	writers []*writerState // of every shard; nil where it is not open
}

type writerState struct {
	sink.Writer
	next int // the item that is read next
}

// restart starts every worker anew.
func (s *simulation) restart() error {
	s.fleet = nil
	for range s.plan.Writers {
		made, err := s.target.NewSink()
		if err != nil {
			return err
		}
		s.fleet = append(s.fleet,
			&worker{sink: made, writers: make([]*writerState, len(s.shards))})
	}
	return nil
}

func (s *simulation) done() bool {
	for _, shard := range s.shards {
		if !shard.ended {
			return false
		}
	}
	return true
}

// chance is true once in n times, and never in a calm simulation.
func (s *simulation) chance(n int) bool { return s.rng.IntN(n) == 0 && !s.plan.Calm }

// step has one worker do one thing with one shard.
func (s *simulation) step(ctx context.Context) error {
	if crasher, ok := s.target.(Crasher); ok && s.chance(60) {
		s.stats.Crashes++
		if err := crasher.Crash(); err != nil {
			return err
		}
		if err := s.restart(); err != nil {
			return err
		}
	}
	w, n := s.fleet[s.rng.IntN(len(s.fleet))], s.rng.IntN(len(s.shards))
	shard := s.shards[n]
	if !s.open(shard.shard.Parents) {
		return nil
	}
	cancelled := s.chance(50)
	if cancelled {
		s.stats.Cancelled++
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		cancel()
	}
	var err error
	switch {
	case w.writers[n] == nil:
		w.writers[n], err = s.openWriter(ctx, w, shard)
	case s.chance(25): // handed over, or killed
		if s.rng.IntN(2) == 0 {
			err = w.writers[n].Close()
		}
		w.writers[n] = nil
	default:
		err = s.use(ctx, w, n)
	}
	switch {
	case err == nil:
		return nil
	case cancelled && errors.Is(err, context.Canceled):
	case s.plan.Tolerate != nil && s.plan.Tolerate(err):
		s.stats.Tolerated++
	default:
		return fmt.Errorf("%s: %w", shard.shard.ID, err)
	}
	w.writers[n] = nil
	return nil
}

// open reports whether a shard with these parents may be read.
func (s *simulation) open(parents []runnel.ShardID) bool {
	for _, shard := range s.shards {
		for _, parent := range parents {
			if shard.shard.ID == parent && !shard.ended {
				return false
			}
		}
	}
	return true
}

func (s *simulation) openWriter(
	ctx context.Context, w *worker, shard *shardState,
) (*writerState, error) {
	s.stats.Opens++
	opened := shard.shard
	if len(shard.rows) > 0 {
		row := shard.rows[len(shard.rows)-1]
		token := row.Token
		if s.chance(4) {
			s.stats.Stale++
			row = shard.rows[s.rng.IntN(len(shard.rows))]
			token = row.Token
			switch s.rng.IntN(4) {
			case 0:
				row, token = sink.Committed{}, ""
			case 1:
				token = shard.rows[s.rng.IntN(len(shard.rows))].Token
			}
		}
		opened.Checkpoint, opened.Token = row.End, token
	}
	writer, err := w.sink.Open(ctx, opened)
	if err != nil {
		return nil, fmt.Errorf("open: %w", err)
	}
	if err := shard.found(writer.Committed().End); err != nil {
		return nil, fmt.Errorf("open: %w", err)
	}
	return &writerState{Writer: writer, next: shard.from(writer.Committed().End)}, nil
}

// found checks what a writer has found in the sink: never less than what was returned to
// anyone as committed.
func (s *shardState) found(end runnel.Position) error {
	if end.Less(s.acked) {
		return fmt.Errorf("the sink's commit up to %s is gone: it ends at %s", s.acked, end)
	}
	s.ended = s.ended || end == runnel.End
	return nil
}

// use has a writer write, flush or end, and what it answers may be lost.
func (s *simulation) use(ctx context.Context, w *worker, n int) error {
	s.stats.Writes++
	shard, writer := s.shards[n], w.writers[n]
	var committed sink.Committed
	var err error
	through := runnel.End
	switch rest := len(shard.items) - writer.next; {
	case s.rng.IntN(6) == 0:
		through = runnel.End // any
		committed, err = writer.Flush(ctx)
	case rest == 0 && s.rng.IntN(3) == 0 && writer.Committed().End != runnel.End:
		committed, err = writer.End(ctx)
	default:
		through = writer.Committed().End
		if writer.next > 0 && through != runnel.End {
			through = shard.items[writer.next-1].record.Position
		}
		hi := writer.next + min(s.rng.IntN(8), rest)
		records := shard.batch(s.rng, writer.next, hi)
		if hi > writer.next {
			through = shard.items[hi-1].record.Position
		}
		writer.next = hi
		committed, err = writer.Write(ctx, sink.Batch{Records: records, Through: through})
	}
	if s.chance(10) {
		s.stats.Lost++
		if s.rng.IntN(2) == 0 {
			_ = writer.Close() // whatever the answer was, it was lost
		}
		w.writers[n] = nil
		return nil
	}
	if moved := new(sink.MovedError); errors.As(err, &moved) {
		s.stats.Moved++
		if !moved.To.Equal(writer.Committed()) {
			return fmt.Errorf("moved to %v, but the writer knows %v", moved.To, writer.Committed())
		}
		writer.next = shard.from(moved.To.End)
		return shard.found(moved.To.End)
	}
	if err != nil {
		return err
	}
	if through.Less(committed.End) {
		return fmt.Errorf("committed up to %s, but written up to %s", committed.End, through)
	}
	s.acknowledge(shard, committed)
	return nil
}

// acknowledge takes a committed end into the lease row, or not.
func (s *simulation) acknowledge(shard *shardState, committed sink.Committed) {
	if shard.acked.Less(committed.End) {
		shard.acked = committed.End
	}
	shard.ended = shard.ended || committed.End == runnel.End
	if !s.chance(5) {
		shard.rows = append(shard.rows, committed)
	}
}

// check compares what stands with what was there to be read.
func (s *simulation) check(ctx context.Context) error {
	for _, shard := range s.shards {
		got, err := s.target.Records(ctx, shard.shard)
		if err == nil {
			err = compare(got, shard.items)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", shard.shard.ID, err)
		}
	}
	return nil
}
