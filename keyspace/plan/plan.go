// Package plan computes how to reshard a stream: the steps from its open shards to shards that fit
// a load (ForLoad), to N equal shards (Uniform), or to given bounds (WithBounds), in the fewest
// splits and merges. It is pure: no I/O, no goroutine, no clock. Package reshard applies plans to
// streams; the server uses Uniform for UpdateShardCount.
//
// A plan names hash ranges and no shard ids, and never adds and removes the same bound. So the open
// ranges of a stream alone show how far it has come (Plan.Next), and any process can continue an
// interrupted plan.
package plan

import (
	"errors"
	"fmt"
	"time"

	"github.com/runnel-stream/runnel/keyspace"
	"github.com/runnel-stream/runnel/keyspace/load"
)

// Plan is the steps from the open shards of a stream to its final shards. The steps are taken one
// at a time, because a stream allows one reshard at a time.
//
// The steps of a plan are either splits and merges, which change each bound between shards at most
// once, or scalings. A Plan is data: it is safe for concurrent use while it is not changed.
type Plan struct {
	Open  []keyspace.Range // the shards at the start, sorted by hash key
	Steps []Step           // in their order; none if the goal is reached
	Final []Shard          // the shards after the last step, sorted by hash key
	// TooHot are the points that alone are above the target of the goal, sorted by hash key. Their
	// shards stay above the target, with as little other load as possible. Only ForLoad sets it.
	TooHot []load.Point
}

// Shard is one of the shards that a plan ends with.
type Shard struct {
	Range keyspace.Range // its hash keys
	Load  uint64         // predicted load, in the unit of the points; 0 in a plan without load
}

// StepKind is the kind of a step: split, merge or scale.
type StepKind string

// The kinds of steps.
const (
	StepSplit StepKind = "split" // one shard becomes two: SplitShard
	StepMerge StepKind = "merge" // two adjacent ones become one: MergeShards
	StepScale StepKind = "scale" // all become some of equal size: UpdateShardCount
)

// Step is one call of the API. A split has one range in From and two in To, the lower first. A
// merge has two in From, the lower first, and one in To. A scaling has Shards only.
type Step struct {
	Kind     StepKind         // StepSplit, StepMerge or StepScale
	From, To []keyspace.Range // of a split or a merge
	Shards   int              // of a scaling: the number of shards after it
}

// Bound returns the bound that the step changes: the first hash key of the upper one of the two
// shards that a split makes or a merge joins. A scaling has none: Bound returns 0.
func (s Step) Bound() keyspace.Key {
	switch s.Kind {
	case StepSplit:
		return s.To[1].Start
	case StepMerge:
		return s.From[1].Start
	default:
		return keyspace.Key{}
	}
}

// String describes the step in words, with ranges in the form of keyspace.Range.String.
func (s Step) String() string {
	switch s.Kind {
	case StepSplit:
		return fmt.Sprintf("split %s at %s", s.From[0], s.Bound())
	case StepMerge:
		return fmt.Sprintf("merge %s and %s", s.From[0], s.From[1])
	default:
		return fmt.Sprintf("scale to %d equal shards", s.Shards)
	}
}

// done reports whether the bound is in the state that the step leaves it in.
func (s Step) done(bounds map[keyspace.Key]bool) bool {
	return bounds[s.Bound()] == (s.Kind == StepSplit)
}

// ErrLayoutDiffers is wrapped by errors about ranges that do not match a plan.
var ErrLayoutDiffers = errors.New("the open shards are not those of the plan")

// Next returns the index of the next step, for the open ranges of the stream. The ranges tile the
// key space, in any order. All steps before the index are done; if all steps are done, it is
// len(Steps).
func (p Plan) Next(open []keyspace.Range) int {
	open = keyspace.Sorted(open)
	if len(p.Steps) > 0 && p.Steps[0].Kind == StepScale {
		for i := len(p.Steps) - 1; i >= 0; i-- {
			if p.Steps[i].Shards == len(open) && isUniform(open) {
				return i + 1
			}
		}
		return 0
	}
	bounds := make(map[keyspace.Key]bool, len(open))
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

// Reached returns nil if the open ranges, in any order, are those that the plan ends with.
// Otherwise the error wraps ErrLayoutDiffers and names the first difference. After a scaling the
// bounds may differ from the predicted ones by up to 2^20 hash keys.
func (p Plan) Reached(open []keyspace.Range) error {
	open = keyspace.Sorted(open)
	if len(open) != len(p.Final) {
		return fmt.Errorf("%w: %d are open, it ends with %d", ErrLayoutDiffers, len(open),
			len(p.Final))
	}
	near := keyspace.Key{}
	if len(p.Steps) > 0 && p.Steps[0].Kind == StepScale {
		near.Lo = nearEnough
	}
	for i, r := range open {
		want := p.Final[i].Range
		if near.Less(distance(r.Start, want.Start)) || near.Less(distance(r.End, want.End)) {
			return fmt.Errorf("%w: %s is open, it ends with %s there", ErrLayoutDiffers, r, want)
		}
	}
	return nil
}

// Duration estimates the time for all steps, one after the other. each is the time for one split or
// merge, on AWS some 30 s. A scaling counts as one such step for each shard more or less. That is a
// guess: AWS only says that a scaling may take several minutes.
func (p Plan) Duration(each time.Duration) time.Duration {
	steps, shards := 0, len(p.Open)
	for _, s := range p.Steps {
		if s.Kind == StepScale {
			steps += max(1, s.Shards-shards, shards-s.Shards)
			shards = s.Shards
		} else {
			steps++
		}
	}
	return time.Duration(steps) * each
}
