package keyspace

import (
	"errors"
	"fmt"
	"time"
)

// Plan is how a stream of some open shards becomes one of others: steps that are taken one at a
// time, because a stream is resharded by one call at a time. It speaks of hash ranges, never of
// shard ids, so that it can be applied to a stream, be interrupted anywhere, and be gone on with:
// which steps are done is seen from the ranges that are open (Next).
//
// Steps either add and remove bounds between shards, no bound twice, or are scalings. A Plan
// is data: it is safe for concurrent use as long as nobody changes it.
type Plan struct {
	Open  []Range // the shards at the start, by hash key
	Steps []Step
	Final []PlannedShard // the shards after the last step, by hash key
	// TooHot are the points that are above the goal's target by themselves, by hash key: they
	// get shards as much of their own as can be, and these stay above it. None for a plan
	// without load.
	TooHot []Point
}

// PlannedShard is a shard of the layout that a plan ends with.
type PlannedShard struct {
	Range Range
	Load  uint64 // predicted, in the unit of the points; 0 for a plan without load
}

// StepKind is what a step does.
type StepKind string

// The kinds of steps.
const (
	SplitStep StepKind = "split" // one shard becomes two: SplitShard
	MergeStep StepKind = "merge" // two adjacent ones become one: MergeShards
	ScaleStep StepKind = "scale" // all become some of equal size: UpdateShardCount
)

// Step is one call. A split has one range in From and two in To, the lower first; a merge the
// reverse; a scaling has Shards alone.
type Step struct {
	Kind     StepKind
	From, To []Range
	Shards   int
}

// Bound returns the hash key that a split adds as a shard's first, or that a merge removes.
func (s Step) Bound() Key {
	switch s.Kind {
	case SplitStep:
		return s.To[1].Start
	case MergeStep:
		return s.From[1].Start
	default:
		return Key{}
	}
}

// String says what the step does, with ranges as Range.String has them.
func (s Step) String() string {
	switch s.Kind {
	case SplitStep:
		return fmt.Sprintf("split %s at %s", s.From[0], s.Bound())
	case MergeStep:
		return fmt.Sprintf("merge %s and %s", s.From[0], s.From[1])
	default:
		return fmt.Sprintf("scale to %d equal shards", s.Shards)
	}
}

// done reports whether the step's bound is as the step leaves it.
func (s Step) done(bounds map[Key]bool) bool {
	return bounds[s.Bound()] == (s.Kind == SplitStep)
}

// ErrLayout is returned for ranges that are not what a plan makes.
var ErrLayout = errors.New("the open shards are not those of the plan")

// Next returns the number of the step to take next when these ranges are open, which tile the
// key space in any order: all before it are done. It is len(Steps) when all are.
func (p Plan) Next(open []Range) int {
	open = sortedRanges(open)
	if len(p.Steps) > 0 && p.Steps[0].Kind == ScaleStep {
		for i := len(p.Steps) - 1; i >= 0; i-- {
			if p.Steps[i].Shards == len(open) && isUniform(open) {
				return i + 1
			}
		}
		return 0
	}
	bounds := make(map[Key]bool, len(open))
	for _, r := range open {
		bounds[r.Start] = true
	}
	for i, step := range p.Steps {
		if !step.done(bounds) {
			return i
		}
	}
	return len(p.Steps)
}

// Reached returns nil when these open ranges, in any order, are what the plan ends with, and
// else an error that wraps ErrLayout and names the first difference. Bounds after a scaling may
// be a few hash keys beside those that were predicted.
func (p Plan) Reached(open []Range) error {
	open = sortedRanges(open)
	if len(open) != len(p.Final) {
		return fmt.Errorf("%w: %d are open, it ends with %d", ErrLayout, len(open), len(p.Final))
	}
	near := Key{}
	if len(p.Steps) > 0 && p.Steps[0].Kind == ScaleStep {
		near.Lo = nearEnough
	}
	for i, r := range open {
		want := p.Final[i].Range
		if near.Less(distance(r.Start, want.Start)) || near.Less(distance(r.End, want.End)) {
			return fmt.Errorf("%w: %s is open, it ends with %s there", ErrLayout, r, want)
		}
	}
	return nil
}

// Duration is about how long the steps take one after another, at that long for a split or a
// merge; on AWS some 30 s. A scaling is counted as one of them for each shard more or less,
// which is a guess: AWS says of it that it may take several minutes.
func (p Plan) Duration(each time.Duration) time.Duration {
	steps, shards := 0, len(p.Open)
	for _, s := range p.Steps {
		if s.Kind == ScaleStep {
			steps += max(1, s.Shards-shards, shards-s.Shards)
			shards = s.Shards
		} else {
			steps++
		}
	}
	return time.Duration(steps) * each
}
