package kinesis

import (
	"slices"

	"github.com/runnel-stream/runnel/keyspace"
)

// scaleStep is a split or a merge: one or two pieces go and two or one come in their place.
// The pieces are counted from 0: first those that were there, by hash key, then what the steps
// bring, in their order. Steps that are to be taken later stand in the log.
type scaleStep struct {
	From []int            `json:"from"` // the parents, in the order of the request
	To   []keyspace.Range `json:"to"`
}

// splitStep is the step that splits a piece into two.
func splitStep(piece int, low, high keyspace.Range) scaleStep {
	return scaleStep{From: []int{piece}, To: []keyspace.Range{low, high}}
}

// nearEnough is how far, in hash keys, a shard's bound may be from where it should be and stay
// there: nothing of a key space of 2^128, and more than the rounding that lies between the
// bounds of N and of 2N equal ranges. Without it, a scaling from three shards to six would
// first move both inner bounds by one key, with four splits and merges more.
const nearEnough = 1 << 20

// planScale returns the steps that turn ranges, which tile the key space in order, into n equal
// ones. Each step removes one bound or adds one, and there are no more of them than bounds that
// are wrong or missing: N to 2N is N splits, 2N to N is N merges. All the splits come first.
// Several of one piece, and several merges into one, are a balanced tree, since the children of
// a resharding have their sequence numbers a second later than their parents.
func planScale(open []keyspace.Range, n int) []scaleStep {
	p := scalePlan{pieces: slices.Clone(open)}
	bounds := scaleBounds(open, n)
	var leaves []int
	rest := bounds
	for i, r := range open {
		inside := 0
		for inside < len(rest) && !r.End.Less(rest[inside]) {
			inside++
		}
		own := rest[:inside]
		rest = rest[inside:]
		if len(own) > 0 && own[0] == r.Start {
			own = own[1:] // it is there already
		}
		leaves = p.split(i, own, leaves)
	}
	from := 0
	for to := 1; to <= len(leaves); to++ {
		if to < len(leaves) {
			if _, wanted := slices.BinarySearchFunc(bounds, p.pieces[leaves[to]].Start,
				keyspace.Key.Compare); !wanted {
				continue
			}
		}
		p.merge(leaves[from:to])
		from = to
	}
	return p.steps
}

// scaleBounds returns where all but the first of n equal ranges start; near to a bound that is
// there already it is that one.
func scaleBounds(open []keyspace.Range, n int) []keyspace.Key {
	bounds := make([]keyspace.Key, 0, n-1)
	near := keyspace.Key{Lo: nearEnough}
	for _, r := range keyspace.Uniform(n)[1:] {
		want := r.Start
		// The first range that starts no more than nearEnough before the bound.
		at, _ := slices.BinarySearchFunc(open, want.Sub(near),
			func(r keyspace.Range, key keyspace.Key) int { return r.Start.Compare(key) })
		best := want
		for ; at < len(open) && !want.Add(near).Less(open[at].Start); at++ {
			if best == want || distance(open[at].Start, want).Less(distance(best, want)) {
				best = open[at].Start
			}
			if best == want {
				break // exactly there
			}
		}
		bounds = append(bounds, best)
	}
	return bounds
}

func distance(a, b keyspace.Key) keyspace.Key {
	if a.Less(b) {
		return b.Sub(a)
	}
	return a.Sub(b)
}

// scalePlan is a plan that is being made.
type scalePlan struct {
	pieces []keyspace.Range
	steps  []scaleStep
}

func (p *scalePlan) step(from []int, to ...keyspace.Range) (first int) {
	p.steps = append(p.steps, scaleStep{From: from, To: to})
	p.pieces = append(p.pieces, to...)
	return len(p.pieces) - len(to)
}

// split splits a piece at the bounds, the middle one first, and appends what becomes of it to
// leaves, by hash key.
func (p *scalePlan) split(piece int, bounds []keyspace.Key, leaves []int) []int {
	if len(bounds) == 0 {
		return append(leaves, piece)
	}
	middle := len(bounds) / 2
	low, high := p.pieces[piece].SplitAt(bounds[middle])
	first := p.step([]int{piece}, low, high)
	leaves = p.split(first, bounds[:middle], leaves)
	return p.split(first+1, bounds[middle+1:], leaves)
}

// merge merges adjacent pieces into one and returns it.
func (p *scalePlan) merge(pieces []int) int {
	if len(pieces) == 1 {
		return pieces[0]
	}
	low, high := p.merge(pieces[:len(pieces)/2]), p.merge(pieces[len(pieces)/2:])
	return p.step([]int{low, high}, p.pieces[low].Join(p.pieces[high]))
}
