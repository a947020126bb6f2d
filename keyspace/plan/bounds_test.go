package plan_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/runnel-stream/runnel/keyspace"
	"github.com/runnel-stream/runnel/keyspace/load"
	"github.com/runnel-stream/runnel/keyspace/plan"
)

// A plan to bounds ends with these and no others, in one step for each that is new or goes.
func TestPlanBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		open, points := planLayout(t, 12), planPoints(t)
		var bounds []keyspace.Key
		steps := 0
		for _, r := range open[1:] {
			if r.Start != (keyspace.Key{}) && rapid.Bool().Draw(t, "stays") {
				bounds = append(bounds, r.Start)
			}
		}
		for _, name := range rapid.SliceOfNDistinct(rapid.IntRange(0, 99), 0, 8,
			rapid.ID).Draw(t, "new") {
			bounds = append(bounds, keyspace.Of(fmt.Sprint("bound", name)))
		}
		for _, r := range open {
			if r.Start != (keyspace.Key{}) && !slices.Contains(bounds, r.Start) {
				steps++
			}
		}
		for _, bound := range bounds {
			if !slices.ContainsFunc(open, func(r keyspace.Range) bool { return r.Start == bound }) {
				steps++
			}
		}
		p, err := plan.WithBounds(open, rapid.Permutation(bounds).Draw(t, "bounds"), points)
		if err != nil {
			t.Fatal(err)
		}
		checkPlan(t, p, open, points)
		var got []keyspace.Key
		for _, shard := range p.Final[1:] {
			got = append(got, shard.Range.Start)
		}
		slices.SortFunc(bounds, keyspace.Key.Compare)
		if !slices.Equal(got, bounds) || len(p.Steps) != steps {
			t.Fatalf("it ends with %v in %d steps, want %v in %d", got, len(p.Steps), bounds, steps)
		}
	})
}

func TestPlanBoundsRefuses(t *testing.T) {
	two, one := keyspace.Uniform(2), keyspace.Uniform(2)[1].Start
	for _, bounds := range [][]keyspace.Key{{{}}, {one, one}, {{Lo: 1}}, {keyspace.Max()}} {
		if p, err := plan.WithBounds(two, bounds,
			[]load.Point{{Weight: 1}, {At: keyspace.Max(), Weight: 1}}); err == nil {
			t.Errorf("%v: %v", bounds, p.Steps)
		}
	}
	if _, err := plan.WithBounds(two[1:], nil, nil); err == nil {
		t.Error("a gap was taken")
	}
}

// Where two things are scarce, a shard's load is the larger sum, and both fit.
func TestPlanLoadOfTwoThings(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		open, points := planLayout(t, 8), planPoints(t)
		histogram := load.NewHistogram(1 << 10)
		for i := range points {
			points[i].Also = rapid.Uint64Range(0, 100).Draw(t, "also")
			histogram.AddPoint(points[i])
		}
		goal := plan.Goal{Target: rapid.Uint64Range(1, 600).Draw(t, "target")}
		goal.MergeUnder = rapid.Uint64Range(0, goal.Target).Draw(t, "merge under")
		p, err := plan.ForLoad(open, histogram.Points(), goal)
		if err != nil {
			t.Fatal(err)
		}
		for _, shard := range p.Final {
			var sum load.Point
			keys := map[keyspace.Key]bool{}
			for _, point := range points {
				if shard.Range.Contains(point.At) && point.Weight+point.Also > 0 {
					sum.Weight += point.Weight
					sum.Also += point.Also
					keys[point.At] = true
				}
			}
			if shard.Load != max(sum.Weight, sum.Also) || shard.Load > goal.Target && len(keys) > 1 {
				t.Fatalf("%d keys of %d and %d: predicted %d, the target is %d", len(keys),
					sum.Weight, sum.Also, shard.Load, goal.Target)
			}
		}
	})
}
