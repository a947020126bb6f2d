package sinktest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/sink"
)

// Plan is a simulation of a stream. Its shards split and merge, and its producers send units twice.
// Its readers and their writers are alive on all shards all the time. A reader gets its state of
// units from the sink alone. The seed determines the whole simulation.
type Plan struct {
	Seed    uint64 // decides every choice
	Writers int    // default 3
	Records int    // average number of user records of a shard, roughly; default 25
	Stream  string // default "orders"
	// Calm leaves out the faults: lost answers, stale checkpoints, cancelled calls, crashes.
	Calm bool
	// Blind leaves out the comparison of states, so that the simulation only finds the effects of a
	// wrong state: records lost, doubled or out of order. It is for controls.
	Blind bool
	// Tolerate reports whether the target made up this error. The simulation opens the shard again
	// after such an error, and fails on any other. Default: no error is tolerated.
	Tolerate func(error) bool
}

// Stats counts the events of a simulation.
type Stats struct {
	Opens, Writes int // calls of Sink.Open and Writer.Write
	Moved         int // commits that failed because another writer was first
	// Lost, Stale, Cancelled and Crashes count the faults: answers, checkpoints, calls, and losses
	// of all data that was not durable.
	Lost, Stale, Cancelled, Crashes int
	Tolerated                       int // errors that Plan.Tolerate accepted
	Doubles                         int // units that readers dropped
	Empty                           int // commits without a record, except at a shard's end
	Inherited                       int // openings with a state: a parent's, or a commit's
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
	s.Doubles += other.Doubles
	s.Empty += other.Empty
	s.Inherited += other.Inherited
}

// Simulate runs the plan on a target that has no data of the plan's stream. The error names the
// records or the state that the sink has lost, doubled, reordered or forgotten.
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
	tree, err := newTree(s.rng, plan.Stream, plan.Records, !plan.Calm)
	if err != nil {
		return s.stats, err
	}
	items := 0
	for _, source := range tree {
		s.shards = append(s.shards, &shardState{
			source: source, blind: plan.Blind, ends: map[runnel.Position]bool{runnel.End(): true},
		})
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
	source *source
	blind  bool                     // see Plan.Blind
	ends   map[runnel.Position]bool // the positions at which any writer's batch has ended
	rows   []sink.Committed         // the earlier contents of the lease row
	acked  runnel.Position          // the furthest end that any writer has returned
	ended  bool
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
	if !s.open(shard.source.shard.Parents) {
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
		return fmt.Errorf("%s: %w", shard.source.shard.ID, err)
	}
	w.writers[n] = nil
	return nil
}

// open reports whether a shard with these parents may be read.
func (s *simulation) open(parents []runnel.ShardID) bool {
	for _, shard := range s.shards {
		for _, parent := range parents {
			if shard.source.shard.ID == parent && !shard.ended {
				return false
			}
		}
	}
	return true
}

// check compares the sink's records with the stream's.
func (s *simulation) check(ctx context.Context) error {
	for _, shard := range s.shards {
		got, err := s.target.Records(ctx, shard.source.shard)
		if err == nil {
			err = compare(got, shard.source.items)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", shard.source.shard.ID, err)
		}
	}
	return nil
}
