package plan

import (
	"errors"
	"fmt"
	"slices"

	"github.com/runnel-stream/runnel/keyspace"
)

// Validate returns nil if the plan is consistent: its open ranges tile the key space, each step can
// follow the one before by the rules of SplitShard, MergeShards and UpdateShardCount, and the last
// step leads to Final. The plans of this package are consistent.
func (p Plan) Validate() error {
	if len(p.Open) > MaxShards || len(p.Final) > MaxShards || len(p.Steps) > 2*MaxShards {
		return fmt.Errorf("the plan is for more than %d shards", MaxShards)
	}
	if err := keyspace.Tiles(p.Open); err != nil {
		return fmt.Errorf("the plan's open shards: %w", err)
	}
	open := make(map[keyspace.Key]keyspace.Range, len(p.Open))
	for _, r := range p.Open {
		open[r.Start] = r
	}
	kind, bounds := StepKind(""), map[keyspace.Key]bool{}
	for i, step := range p.Steps {
		if (kind == StepScale) != (step.Kind == StepScale) && i > 0 {
			return fmt.Errorf("step %d of the plan: scalings and other steps are mixed", i+1)
		}
		if err := step.take(open); err != nil {
			return fmt.Errorf("step %d of the plan: %w", i+1, err)
		}
		kind = step.Kind
		if kind == StepScale {
			continue
		}
		if bounds[step.Bound()] {
			return fmt.Errorf("step %d of the plan changes the bound %s a second time",
				i+1, step.Bound())
		}
		bounds[step.Bound()] = true
	}
	return p.Reached(openRanges(open))
}

func openRanges(open map[keyspace.Key]keyspace.Range) []keyspace.Range {
	ranges := make([]keyspace.Range, 0, len(open))
	for _, r := range open {
		ranges = append(ranges, r)
	}
	return keyspace.Sorted(ranges)
}

// take changes the open ranges, keyed by their starts, as the step does.
func (s Step) take(open map[keyspace.Key]keyspace.Range) error {
	switch s.Kind {
	case StepSplit:
		if len(s.From) != 1 || len(s.To) != 2 || !splitsAt(s.From[0], s.To[1].Start) {
			return errors.New("it is not a split that SplitShard can make")
		}
		low, high := s.From[0].SplitAt(s.To[1].Start)
		if !slices.Equal(s.To, []keyspace.Range{low, high}) {
			return errors.New("it is not a split of its shard")
		}
	case StepMerge:
		if len(s.From) != 2 || len(s.To) != 1 || !s.From[0].Precedes(s.From[1]) ||
			s.To[0] != s.From[0].Join(s.From[1]) {
			return errors.New("it is not a merge of adjacent shards, the lower first")
		}
	case StepScale:
		return s.scale(open)
	default:
		return fmt.Errorf("the kind %q: want split, merge or scale", s.Kind)
	}
	for _, r := range s.From {
		if there, ok := open[r.Start]; !ok || there != r {
			return fmt.Errorf("%w: %s is not open then", ErrLayoutDiffers, r)
		}
	}
	for _, r := range s.From {
		delete(open, r.Start)
	}
	for _, r := range s.To {
		open[r.Start] = r
	}
	return nil
}

func (s Step) scale(open map[keyspace.Key]keyspace.Range) error {
	n := len(open)
	if len(s.From) != 0 || len(s.To) != 0 || s.Shards < 1 || s.Shards > MaxShards ||
		s.Shards > 2*n || 2*s.Shards < n {
		return fmt.Errorf("UpdateShardCount does not go from %d shards to %d: it at most "+
			"doubles and at least halves them", n, s.Shards)
	}
	clear(open)
	for _, r := range keyspace.Uniform(s.Shards) {
		open[r.Start] = r
	}
	return nil
}
