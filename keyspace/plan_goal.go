package keyspace

import (
	"errors"
	"fmt"
	"slices"
)

// Goal is what a plan is to reach. Loads are in the unit of the points.
type Goal struct {
	// Target is the most load that a shard should have: one above it is split. At least 1.
	Target uint64
	// MergeUnder is up to which sum adjacent shards are merged: at most Target; well below it,
	// a load that goes up and down does not split again what was merged. Default 0: nothing is
	// merged.
	MergeUnder uint64
	// MinShards is below how many shards nothing is merged. Default 1.
	MinShards int
}

// Validate returns everything that is wrong with the goal.
func (g Goal) Validate() error {
	var errs []error
	if g.Target < 1 {
		errs = append(errs, errors.New("the target load of a shard is 0: want at least 1"))
	}
	if g.MergeUnder > g.Target {
		errs = append(errs, fmt.Errorf("shards would be merged up to a load of %d, above their "+
			"target of %d: want at most that", g.MergeUnder, g.Target))
	}
	if g.MinShards < 0 {
		errs = append(errs, fmt.Errorf("the least number of shards is %d: want 0 or more",
			g.MinShards))
	}
	return errors.Join(errs...)
}

// PlanLoad returns the plan from the open ranges, which tile the key space in any order, to a
// layout in which the load, points in any order, leaves each shard at or below the target.
//
// A shard above it is split into the fewest shards that are at or below it, cut at weighted
// quantiles, so that the most loaded of them has as little as can be. Then adjacent shards are
// merged, from the lowest hash key on, for as long as their sum allows. A point is never cut:
// one above the target by itself is in Plan.TooHot. Without any load nothing is merged, because
// a stream that was not seen is not an idle one.
func PlanLoad(open []Range, points []Point, goal Goal) (Plan, error) {
	p, err := newPlan(open)
	if err := errors.Join(err, goal.Validate()); err != nil {
		return Plan{}, err
	}
	points = gather(points)
	var bounds []Key
	rest := points
	for i, r := range p.Open {
		inside := 0
		for inside < len(rest) && !r.End.Less(rest[inside].At) {
			inside++
		}
		if i > 0 {
			bounds = append(bounds, r.Start)
		}
		bounds = append(bounds, cuts(r, rest[:inside], goal.Target)...)
		rest = rest[inside:]
	}
	if len(points) > 0 {
		bounds = mergeable(bounds, points, goal)
	}
	p.Steps = stepsTo(p.Open, bounds)
	p.predict(between(bounds), points)
	for _, point := range points {
		if point.load() > goal.Target {
			p.TooHot = append(p.TooHot, point)
		}
	}
	return p, nil
}

// gather returns the points by hash key, with one for each that has weight.
func gather(points []Point) []Point {
	sorted := slices.SortedFunc(slices.Values(points), func(a, b Point) int {
		return a.At.Compare(b.At)
	})
	gathered := sorted[:0]
	for _, p := range sorted {
		if last := len(gathered) - 1; last >= 0 && gathered[last].At == p.At {
			gathered[last] = gathered[last].plus(p)
		} else if p.load() > 0 {
			gathered = append(gathered, p)
		}
	}
	return gathered
}

// mergeable returns the bounds without those between shards that are merged.
func mergeable(bounds []Key, points []Point, goal Goal) []Key {
	sums := sumsOf(between(bounds), points)
	most := len(sums) - max(1, goal.MinShards)
	kept := make([]Key, 0, len(bounds))
	sum := sums[0]
	for i, shard := range sums[1:] {
		joined := sum.plus(shard)
		if goal.MergeUnder > 0 && joined.load() <= goal.MergeUnder && most > 0 {
			sum, most = joined, most-1
			continue
		}
		kept = append(kept, bounds[i])
		sum = shard
	}
	return kept
}

// cuts returns where to split a range, whose points these are in order, so that no piece has
// more than target: the fewest pieces, and of these the ones with the lowest peak.
func cuts(r Range, points []Point, target uint64) []Key {
	fewest := pack(r, points, target)
	if len(fewest) == 0 {
		return nil
	}
	// The lowest most of a piece that needs no more pieces: it is above low, and high does.
	low, high := uint64(0), target
	for high-low > 1 {
		middle := low + (high-low)/2
		if len(pack(r, points, middle)) <= len(fewest) {
			high = middle
		} else {
			low = middle
		}
	}
	if best := pack(r, points, high); len(best) <= len(fewest) {
		return best
	}
	return fewest
}

// pack fills pieces from the left, each up to most, and returns where they are cut: before a
// point, and only where SplitShard can.
func pack(r Range, points []Point, most uint64) []Key {
	var bounds []Key
	var sum Point
	for _, point := range points {
		if sum.load() > 0 && sum.plus(point).load() > most && splitsAt(r, point.At) {
			bounds = append(bounds, point.At)
			r.Start, sum = point.At, Point{}
		}
		sum = sum.plus(point)
	}
	return bounds
}
