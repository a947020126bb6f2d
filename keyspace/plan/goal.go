package plan

import (
	"errors"
	"fmt"
	"slices"

	"github.com/runnel-stream/runnel/keyspace"
	"github.com/runnel-stream/runnel/keyspace/load"
)

// Goal is the goal of ForLoad. Its loads have the unit of the points.
type Goal struct {
	// Target is the highest load that a shard should have; a shard above it is split. At least 1.
	Target uint64
	// MergeUnder is the highest load of a merged shard, at most Target. Set it well below Target,
	// so that a varying load does not split a merged shard again. Default 0: no merges.
	MergeUnder uint64
	// MinShards is the number of shards at which merging stops. Default 1.
	MinShards int
}

// Validate reports every fault of the goal.
func (g Goal) Validate() error {
	var faults []error
	fault := func(bad bool, format string, args ...any) {
		if bad {
			faults = append(faults, fmt.Errorf("plan: "+format, args...))
		}
	}
	fault(g.Target < 1, "Target is %d: want the highest load of a shard, 1 or more", g.Target)
	fault(g.MergeUnder > g.Target, "MergeUnder is %d: want at most Target, which is %d",
		g.MergeUnder, g.Target)
	fault(g.MinShards < 0, "MinShards is %d: want 0 (for 1) or more", g.MinShards)
	return errors.Join(faults...)
}

// ForLoad returns the plan from the open ranges, which tile the key space in any order, to shards
// of at most the target load. The points may be in any order.
//
// A shard above the target is split into the fewest shards at or below it. The cuts are weighted
// quantiles, so the highest load among the pieces is as low as possible. Then adjacent shards are
// merged, from the lowest hash key up, while their sum allows it. A point is never cut: a point
// that alone is above the target is in Plan.TooHot. Without any load nothing is merged, because no
// load may mean no measurement.
//
// It fails if the ranges do not tile or the goal is not valid.
func ForLoad(open []keyspace.Range, points []load.Point, goal Goal) (Plan, error) {
	p, err := newPlan(open)
	if err := errors.Join(err, goal.Validate()); err != nil {
		return Plan{}, err
	}
	points = gather(points)
	var bounds []keyspace.Key
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
		if point.Load() > goal.Target {
			p.TooHot = append(p.TooHot, point)
		}
	}
	return p, nil
}

// gather returns the points with a load, sorted by hash key, one for each hash key.
func gather(points []load.Point) []load.Point {
	sorted := slices.SortedFunc(slices.Values(points), func(a, b load.Point) int {
		return a.At.Compare(b.At)
	})
	gathered := sorted[:0]
	for _, p := range sorted {
		if last := len(gathered) - 1; last >= 0 && gathered[last].At == p.At {
			gathered[last] = gathered[last].Plus(p)
		} else if p.Load() > 0 {
			gathered = append(gathered, p)
		}
	}
	return gathered
}

// mergeable returns the bounds that remain after the merges.
func mergeable(bounds []keyspace.Key, points []load.Point, goal Goal) []keyspace.Key {
	sums := sumsOf(between(bounds), points)
	most := len(sums) - max(1, goal.MinShards)
	kept := make([]keyspace.Key, 0, len(bounds))
	sum := sums[0]
	for i, shard := range sums[1:] {
		joined := sum.Plus(shard)
		if goal.MergeUnder > 0 && joined.Load() <= goal.MergeUnder && most > 0 {
			sum, most = joined, most-1
			continue
		}
		kept = append(kept, bounds[i])
		sum = shard
	}
	return kept
}

// cuts returns the keys at which to split a range, so that no piece has more load than target: the
// fewest pieces, and among these cuts the ones with the lowest peak. The points are those of the
// range, sorted.
func cuts(r keyspace.Range, points []load.Point, target uint64) []keyspace.Key {
	fewest := pack(r, points, target)
	if len(fewest) == 0 {
		return nil
	}
	// Search the lowest peak that needs no more pieces: low is too low, high is enough.
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

// pack fills pieces from the left, each up to most, and returns the cuts between them. A cut is
// before a point, and only at a key that SplitShard allows.
func pack(r keyspace.Range, points []load.Point, most uint64) []keyspace.Key {
	var bounds []keyspace.Key
	var sum load.Point
	for _, point := range points {
		if sum.Load() > 0 && sum.Plus(point).Load() > most && splitsAt(r, point.At) {
			bounds = append(bounds, point.At)
			r.Start, sum = point.At, load.Point{}
		}
		sum = sum.Plus(point)
	}
	return bounds
}
