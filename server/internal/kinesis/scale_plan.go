package kinesis

import (
	"fmt"

	"github.com/runnel-stream/runnel/keyspace"
	keyplan "github.com/runnel-stream/runnel/keyspace/plan"
	"github.com/runnel-stream/runnel/server/internal/catalogue"
)

// planScale returns the steps of plan.Uniform that turn the ranges, which tile the key space by
// hash key, into n equal ones.
//
// The order of the steps counts: children get their sequence numbers one second later than their
// parents, so a balanced tree of splits and merges needs the fewest seconds.
func planScale(open []keyspace.Range, n int) ([]catalogue.Step, error) {
	uniform, err := keyplan.Uniform(open, n, 0)
	if err != nil {
		return nil, fmt.Errorf("scale to %d shards: %w", n, err)
	}
	pieces := make(map[keyspace.Range]int, len(open)+2*len(uniform.Steps))
	for i, r := range open {
		pieces[r] = i
	}
	steps, next := make([]catalogue.Step, len(uniform.Steps)), len(open)
	for i, s := range uniform.Steps {
		from := make([]int, len(s.From))
		for at, r := range s.From {
			from[at] = pieces[r]
		}
		for _, r := range s.To {
			pieces[r] = next
			next++
		}
		steps[i] = catalogue.Step{From: from, To: s.To}
	}
	return steps, nil
}
