package plan

import (
	"fmt"
	"slices"

	"github.com/runnel-stream/runnel/keyspace"
	"github.com/runnel-stream/runnel/keyspace/load"
)

// MaxShards is the highest number of open shards in a plan, which is the limit of AWS
// ("UpdateShardCount": "Scale up to more than 10000 shards" is refused).
const MaxShards = 10_000

// nearEnough is the distance, in hash keys, within which an existing bound serves as a wanted one.
// It is nothing beside 2^128 and more than the rounding between the bounds of N and of 2N equal
// ranges. Without it a scaling from three shards to six would first move both inner bounds by one
// key, with four more splits and merges.
const nearEnough = 1 << 20

// Uniform returns the plan from the open ranges, which tile the key space in any order, to n equal
// ones, n in [1, MaxShards]. It takes the fewest splits and merges: one for each missing or
// superfluous bound. So N to 2N is N splits, and 2N to N is N merges. All splits come first;
// several splits of one shard, or merges into one, form a balanced tree.
//
// If UpdateShardCount needs fewer calls, and no more than scalings, the steps are scalings instead:
// each at most doubles and at least halves the number of shards. AWS allows ten a day. If scalings
// is 0 there are none.
//
// It fails if the ranges do not tile or n is out of range.
func Uniform(open []keyspace.Range, n, scalings int) (Plan, error) {
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

// OneStep returns the plan of a single step on the open ranges, which tile the key space in any
// order. It fails if the step does not fit these ranges; the error then may wrap ErrLayoutDiffers.
func OneStep(open []keyspace.Range, step Step) (Plan, error) {
	p, err := newPlan(open)
	if err != nil {
		return Plan{}, err
	}
	p.Steps = []Step{step}
	after := make(map[keyspace.Key]keyspace.Range, len(open))
	for _, r := range open {
		after[r.Start] = r
	}
	if err := step.take(after); err != nil {
		return Plan{}, fmt.Errorf("%s: %w", step, err)
	}
	p.predict(openRanges(after), nil)
	return p, nil
}

// newPlan returns the plan without steps: the open ranges, sorted.
func newPlan(open []keyspace.Range) (Plan, error) {
	if err := keyspace.Tiles(open); err != nil {
		return Plan{}, fmt.Errorf("a plan for the open shards: %w", err)
	}
	return Plan{Open: keyspace.Sorted(open)}, nil
}

// predict sets the final shards and their loads.
func (p *Plan) predict(final []keyspace.Range, points []load.Point) {
	p.Final = make([]Shard, len(final))
	for i, sum := range sumsOf(final, points) {
		p.Final[i] = Shard{Range: final[i], Load: sum.Load()}
	}
}

// sumsOf returns the sums of the points in each of the ranges, which tile the key space in order.
func sumsOf(ranges []keyspace.Range, points []load.Point) []load.Point {
	sums := make([]load.Point, len(ranges))
	for _, point := range points {
		at := keyspace.Locate(ranges, point.At)
		sums[at] = sums[at].Plus(point)
	}
	return sums
}

// scaleSteps returns the fewest scalings from one number of shards to another.
func scaleSteps(from, to int) (steps []Step) {
	for from != to {
		if from < to {
			from = min(to, 2*from)
		} else {
			from = max(to, from-from/2)
		}
		steps = append(steps, Step{Kind: StepScale, Shards: from})
	}
	return steps
}

// uniformBounds returns the first keys of n equal ranges but the lowest one. An existing bound that
// is near enough replaces the exact one.
func uniformBounds(open []keyspace.Range, n int) []keyspace.Key {
	bounds := make([]keyspace.Key, 0, n-1)
	for _, r := range keyspace.Uniform(n)[1:] {
		bound, off := r.Start, keyspace.Key{Lo: nearEnough + 1}
		at := keyspace.Locate(open, r.Start)
		for _, there := range open[at:min(at+2, len(open))] {
			if d := distance(there.Start, r.Start); d.Less(off) && there.Start != (keyspace.Key{}) {
				bound, off = there.Start, d
			}
		}
		bounds = append(bounds, bound)
	}
	return bounds
}

// isUniform reports whether the sorted ranges are equal but for rounding.
func isUniform(open []keyspace.Range) bool {
	return slices.EqualFunc(open, keyspace.Uniform(len(open)), func(a, b keyspace.Range) bool {
		return !(keyspace.Key{Lo: nearEnough}).Less(distance(a.Start, b.Start))
	})
}

func distance(a, b keyspace.Key) keyspace.Key {
	if a.Less(b) {
		return b.Sub(a)
	}
	return a.Sub(b)
}
