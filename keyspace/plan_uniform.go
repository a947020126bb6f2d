package keyspace

import (
	"fmt"
	"slices"
)

// MaxShards is the most open shards that a plan is made for, as many as AWS scales to
// ("UpdateShardCount": "Scale up to more than 10000 shards" is refused).
const MaxShards = 10_000

// nearEnough is how far, in hash keys, a bound may be from where it should be and stay there:
// nothing of 2^128, and more than the rounding between the bounds of N and of 2N equal ranges,
// for the sake of which no shard is split and merged.
const nearEnough = 1 << 20

// PlanUniform returns the plan from the open ranges, which tile the key space in any order, to n
// equal ones, n in [1, MaxShards], in the fewest splits and merges: one for each bound that is
// wrong or missing.
//
// Where UpdateShardCount needs fewer calls than that, and no more than scalings, the steps are
// these: each at most doubles and at least halves the shards. AWS allows ten in 24 hours; with
// scalings at 0 there are none.
func PlanUniform(open []Range, n, scalings int) (Plan, error) {
	if n < 1 || n > MaxShards {
		return Plan{}, fmt.Errorf("a plan for %d shards: want 1 to %d", n, MaxShards)
	}
	p, err := newPlan(open)
	if err != nil {
		return Plan{}, err
	}
	bounds := uniformBounds(p.Open, n)
	p.Steps = stepsTo(p.Open, bounds)
	if scale := scaleSteps(len(p.Open), n); len(scale) > 0 && len(scale) < len(p.Steps) &&
		len(scale) <= scalings {
		p.Steps = scale
	}
	p.predict(between(bounds), nil)
	return p, nil
}

// PlanStep returns the plan of a single step on the open ranges, which tile the key space in any
// order. It fails when the step cannot be taken there.
func PlanStep(open []Range, step Step) (Plan, error) {
	p, err := newPlan(open)
	if err != nil {
		return Plan{}, err
	}
	p.Steps = []Step{step}
	after := make(map[Key]Range, len(open))
	for _, r := range open {
		after[r.Start] = r
	}
	if err := step.take(after); err != nil {
		return Plan{}, fmt.Errorf("%s: %w", step, err)
	}
	p.predict(openRanges(after), nil)
	return p, nil
}

// newPlan returns the plan that leaves the open ranges as they are, by hash key.
func newPlan(open []Range) (Plan, error) {
	if err := Tiles(open); err != nil {
		return Plan{}, fmt.Errorf("a plan for the open shards: %w", err)
	}
	return Plan{Open: sortedRanges(open)}, nil
}

// predict sets the layout that the plan ends with, and what of the load falls on each shard.
func (p *Plan) predict(final []Range, points []Point) {
	p.Final = make([]PlannedShard, len(final))
	for i, sum := range sumsOf(final, points) {
		p.Final[i] = PlannedShard{Range: final[i], Load: sum.load()}
	}
}

// sumsOf returns what of the points falls on each of the ranges, which tile the key space in
// order.
func sumsOf(ranges []Range, points []Point) []Point {
	sums := make([]Point, len(ranges))
	for _, point := range points {
		at := rangeOf(ranges, point.At)
		sums[at] = sums[at].plus(point)
	}
	return sums
}

// scaleSteps are the fewest scalings from one number of shards to another.
func scaleSteps(from, to int) (steps []Step) {
	for from != to {
		if from < to {
			from = min(to, 2*from)
		} else {
			from = max(to, from-from/2)
		}
		steps = append(steps, Step{Kind: ScaleStep, Shards: from})
	}
	return steps
}

// uniformBounds returns where all but the first of n equal ranges begin; near to a bound that is
// there already it is that one.
func uniformBounds(open []Range, n int) []Key {
	bounds := make([]Key, 0, n-1)
	for _, r := range Uniform(n)[1:] {
		bound, off := r.Start, Key{Lo: nearEnough + 1}
		at := rangeOf(open, r.Start)
		for _, there := range open[at:min(at+2, len(open))] {
			if d := distance(there.Start, r.Start); d.Less(off) && there.Start != (Key{}) {
				bound, off = there.Start, d
			}
		}
		bounds = append(bounds, bound)
	}
	return bounds
}

// isUniform reports whether the ranges, by hash key, are equal but for rounding.
func isUniform(open []Range) bool {
	return slices.EqualFunc(open, Uniform(len(open)), func(a, b Range) bool {
		return !(Key{Lo: nearEnough}).Less(distance(a.Start, b.Start))
	})
}

func distance(a, b Key) Key {
	if a.Less(b) {
		return b.Sub(a)
	}
	return a.Sub(b)
}
