package keyspace

// stepsTo returns the steps from the open ranges, which tile the key space in order, to those
// that begin at 0 and at the bounds, in order. There are as many as bounds that are wrong or
// missing, and no fewer would do, since a step adds or removes one. The splits come first, so
// that no shard has more load on the way than before or after. Several splits of one shard, and
// several merges into one, are a balanced tree: a reader goes from parents to children, and so
// through the fewest generations.
func stepsTo(open []Range, bounds []Key) []Step {
	var steps []Step
	var pieces []Range
	rest := bounds
	for _, r := range open {
		var inside []Key
		for ; len(rest) > 0 && r.Contains(rest[0]); rest = rest[1:] {
			if rest[0] != r.Start { // else it is there already
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

// splitSteps appends the splits of a range at the bounds, the middle one first, and its pieces.
func splitSteps(steps []Step, pieces []Range, r Range, bounds []Key) ([]Step, []Range) {
	if len(bounds) == 0 {
		return steps, append(pieces, r)
	}
	middle := len(bounds) / 2
	low, high := r.SplitAt(bounds[middle])
	steps = append(steps, Step{Kind: SplitStep, From: []Range{r}, To: []Range{low, high}})
	steps, pieces = splitSteps(steps, pieces, low, bounds[:middle])
	return splitSteps(steps, pieces, high, bounds[middle+1:])
}

// mergeSteps appends the merges of adjacent ranges into one, and returns that.
func mergeSteps(steps []Step, pieces []Range) ([]Step, Range) {
	if len(pieces) == 1 {
		return steps, pieces[0]
	}
	steps, low := mergeSteps(steps, pieces[:len(pieces)/2])
	steps, high := mergeSteps(steps, pieces[len(pieces)/2:])
	whole := low.Join(high)
	return append(steps, Step{
		Kind: MergeStep, From: []Range{low, high}, To: []Range{whole},
	}), whole
}

// between returns the ranges that begin at 0 and at the bounds, in order.
func between(bounds []Key) []Range {
	ranges := make([]Range, 0, len(bounds)+1)
	rest := All
	for _, bound := range bounds {
		var low Range
		low, rest = rest.SplitAt(bound)
		ranges = append(ranges, low)
	}
	return append(ranges, rest)
}

// splitsAt reports whether SplitShard takes that hash key for a shard of that range: it must be
// "greater than one plus the shard's StartingHashKey and less than the shard's EndingHashKey",
// as the API's own error says.
func splitsAt(r Range, at Key) bool {
	return r.Start.Add(Key{Lo: 1}).Less(at) && r.Start.Less(at) && at.Less(r.End)
}
