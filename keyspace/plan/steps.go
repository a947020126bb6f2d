package plan

import (
	"github.com/runnel-stream/runnel/keyspace"
)

// stepsTo returns the steps from the open ranges, which tile the key space in order, to the ranges
// that begin at 0 and at the ascending bounds. It takes one step for each missing or superfluous
// bound, which is the minimum, since a step adds or removes one. All splits come first, so that no
// shard has more load on the way than before or after. Several splits of one shard, or merges into
// one, form a balanced tree: readers go from parents to children, and a balanced tree has the
// fewest generations.
func stepsTo(open []keyspace.Range, bounds []keyspace.Key) []Step {
	var steps []Step
	var pieces []keyspace.Range
	rest := bounds
	for _, r := range open {
		var inside []keyspace.Key
		for ; len(rest) > 0 && r.Contains(rest[0]); rest = rest[1:] {
			if rest[0] != r.Start { // else the bound exists
				inside = append(inside, rest[0])
			}
		}
		steps, pieces = splitSteps(steps, pieces, r, inside)
	}
	rest = bounds
	for from := 0; from < len(pieces); {
		to := from + 1
		for to < len(pieces) && (len(rest) == 0 || pieces[to].Start != rest[0]) {
			to++
		}
		if len(rest) > 0 {
			rest = rest[1:]
		}
		steps, _ = mergeSteps(steps, pieces[from:to])
		from = to
	}
	return steps
}

// splitSteps appends the splits of a range at the bounds, the middle one first, and the resulting
// pieces.
func splitSteps(
	steps []Step, pieces []keyspace.Range, r keyspace.Range, bounds []keyspace.Key,
) ([]Step, []keyspace.Range) {
	if len(bounds) == 0 {
		return steps, append(pieces, r)
	}
	middle := len(bounds) / 2
	low, high := r.SplitAt(bounds[middle])
	steps = append(steps, Step{
		Kind: StepSplit, From: []keyspace.Range{r}, To: []keyspace.Range{low, high},
	})
	steps, pieces = splitSteps(steps, pieces, low, bounds[:middle])
	return splitSteps(steps, pieces, high, bounds[middle+1:])
}

// mergeSteps appends the merges of adjacent ranges into one, and returns the merged range.
func mergeSteps(steps []Step, pieces []keyspace.Range) ([]Step, keyspace.Range) {
	if len(pieces) == 1 {
		return steps, pieces[0]
	}
	steps, low := mergeSteps(steps, pieces[:len(pieces)/2])
	steps, high := mergeSteps(steps, pieces[len(pieces)/2:])
	whole := low.Join(high)
	return append(steps, Step{
		Kind: StepMerge, From: []keyspace.Range{low, high}, To: []keyspace.Range{whole},
	}), whole
}

// between returns the ranges that begin at 0 and at the bounds, in order.
func between(bounds []keyspace.Key) []keyspace.Range {
	ranges := make([]keyspace.Range, 0, len(bounds)+1)
	rest := keyspace.All()
	for _, bound := range bounds {
		var low keyspace.Range
		low, rest = rest.SplitAt(bound)
		ranges = append(ranges, low)
	}
	return append(ranges, rest)
}

// splitsAt reports whether SplitShard accepts the hash key for a shard of that range. The key must
// be "greater than one plus the shard's StartingHashKey and less than the shard's EndingHashKey",
// in the words of the API's error.
func splitsAt(r keyspace.Range, at keyspace.Key) bool {
	return r.Start.Add(keyspace.Key{Lo: 1}).Less(at) && r.Start.Less(at) && at.Less(r.End)
}
