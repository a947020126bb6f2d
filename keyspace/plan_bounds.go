package keyspace

import "slices"

// PlanBounds returns the plan from the open ranges, which tile the key space in any order, to the
// shards that begin at hash key 0 and at the bounds, in the fewest splits and merges. The bounds
// are in any order, above 0, and without doubles; the load is predicted from the points, which
// may be none. It fails when the open ranges do not tile, and where a bound is not one that
// SplitShard can make.
func PlanBounds(open []Range, bounds []Key, points []Point) (Plan, error) {
	p, err := newPlan(open)
	if err != nil {
		return Plan{}, err
	}
	bounds = slices.SortedFunc(slices.Values(bounds), Key.Compare)
	p.Steps = stepsTo(p.Open, bounds)
	p.predict(between(bounds), points)
	return p, p.Validate()
}
