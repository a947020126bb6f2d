package plan

import (
	"slices"

	"github.com/runnel-stream/runnel/keyspace"
	"github.com/runnel-stream/runnel/keyspace/load"
)

// WithBounds returns the plan from the open ranges to the shards that begin at hash key 0 and at
// the bounds, in the fewest splits and merges. The open ranges must tile the key space; the bounds
// must be above 0 and distinct; both may be in any order. It predicts loads from the points, which
// may be nil. It fails if the open ranges do not tile, or if SplitShard does not allow a bound.
func WithBounds(open []keyspace.Range, bounds []keyspace.Key, points []load.Point) (Plan, error) {
	p, err := newPlan(open)
	if err != nil {
		return Plan{}, err
	}
	bounds = slices.SortedFunc(slices.Values(bounds), keyspace.Key.Compare)
	p.Steps = stepsTo(p.Open, bounds)
	p.predict(between(bounds), points)
	return p, p.Validate()
}
