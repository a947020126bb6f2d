package kinesis

import (
	"fmt"

	"github.com/runnel-stream/runnel/keyspace"
	keyplan "github.com/runnel-stream/runnel/keyspace/plan"
)

// scaleStep is one split or one merge: it closes one or two pieces and opens two or one instead.
// The pieces are numbered from 0: first the stream's open shards by hash key, then the pieces that
// the steps open, in their order. The log holds the steps of a pending reshard, so the JSON names
// are a file format.
type scaleStep struct {
	From []int            `json:"from"` // the parents, in the order of the request
	To   []keyspace.Range `json:"to"`
}

// splitStep is the step that splits a piece into two.
func splitStep(piece int, low, high keyspace.Range) scaleStep {
	return scaleStep{From: []int{piece}, To: []keyspace.Range{low, high}}
}

// planScale returns the steps of plan.Uniform that turn the ranges, which tile the key space by
// hash key, into n equal ones.
//
// The order of the steps counts: children get their sequence numbers one second later than their
// parents, so a balanced tree of splits and merges needs the fewest seconds.
func planScale(open []keyspace.Range, n int) ([]scaleStep, error) {
	uniform, err := keyplan.Uniform(open, n, 0)
	if err != nil {
		return nil, fmt.Errorf("scale to %d shards: %w", n, err)
	}
	pieces := make(map[keyspace.Range]int, len(open)+2*len(uniform.Steps))
	for i, r := range open {
		pieces[r] = i
	}
	steps, next := make([]scaleStep, len(uniform.Steps)), len(open)
	for i, s := range uniform.Steps {
		from := make([]int, len(s.From))
		for at, r := range s.From {
			from[at] = pieces[r]
		}
		for _, r := range s.To {
			pieces[r] = next
			next++
		}
		steps[i] = scaleStep{From: from, To: s.To}
	}
	return steps, nil
}
