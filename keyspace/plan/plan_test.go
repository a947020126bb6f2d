package plan_test

import (
	"cmp"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/runnel-stream/runnel/keyspace"
	"github.com/runnel-stream/runnel/keyspace/load"
	"github.com/runnel-stream/runnel/keyspace/plan"
)

func toBig(k keyspace.Key) *big.Int {
	n := new(big.Int).SetUint64(k.Hi)
	return n.Lsh(n, 64).Or(n, new(big.Int).SetUint64(k.Lo))
}

func keys() *rapid.Generator[keyspace.Key] {
	word := rapid.OneOf(rapid.Uint64(), rapid.SampledFrom([]uint64{0, 1, ^uint64(0), 1 << 63}))
	return rapid.Custom(func(t *rapid.T) keyspace.Key {
		return keyspace.Key{Hi: word.Draw(t, "hi"), Lo: word.Draw(t, "lo")}
	})
}

// planLayout draws up to most ranges that tile the key space, at random, equal, or mixed.
func planLayout(t *rapid.T, most int) []keyspace.Range {
	layout := keyspace.Uniform(rapid.IntRange(1, most).Draw(t, "shards"))
	for range rapid.IntRange(0, 6).Draw(t, "odd splits") {
		at := rapid.IntRange(0, len(layout)-1).Draw(t, "which")
		cut := keys().Draw(t, "cut")
		r := layout[at]
		if r.Start.Less(cut) && !r.End.Less(cut) {
			low, high := r.SplitAt(cut)
			layout = slices.Replace(layout, at, at+1, low, high)
		}
	}
	return layout
}

func planPoints(t *rapid.T) []load.Point {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) load.Point {
		return load.Point{
			At:     keyspace.Of(fmt.Sprint(rapid.IntRange(0, 100).Draw(t, "name"))),
			Weight: rapid.Uint64Range(0, 100).Draw(t, "weight"),
		}
	}), 0, 60).Draw(t, "points")
}

// takeStep does a step as the API does, by the letter of its rules.
func takeStep(t *rapid.T, open []keyspace.Range, step plan.Step) []keyspace.Range {
	if step.Kind == plan.StepScale {
		if step.Shards > 2*len(open) || 2*step.Shards < len(open) {
			t.Fatalf("%s from %d", step, len(open))
		}
		return keyspace.Uniform(step.Shards)
	}
	for _, r := range step.From {
		at := slices.Index(open, r)
		if at < 0 {
			t.Fatalf("%s: %s is not open", step, r)
		}
		open = slices.Delete(slices.Clone(open), at, at+1)
	}
	if step.Kind == plan.StepSplit {
		r, at := step.From[0], toBig(step.To[1].Start)
		first := toBig(r.Start)
		if at.Sub(at, first).Cmp(toBig(keyspace.Key{Lo: 1})) <= 0 ||
			!step.To[1].Start.Less(r.End) {
			t.Fatalf("%s: SplitShard refuses the hash key", step)
		}
	} else if !step.From[0].Precedes(step.From[1]) {
		t.Fatalf("%s: not adjacent, the lower first", step)
	}
	return slices.SortedFunc(slices.Values(append(open, step.To...)),
		func(a, b keyspace.Range) int { return a.Start.Compare(b.Start) })
}

// checkPlan follows a plan: the shards tile the key space after every step, the plan is known
// again at every point, and it ends as predicted.
func checkPlan(t *rapid.T, p plan.Plan, open []keyspace.Range, points []load.Point) {
	for i := 0; ; i++ {
		if err := keyspace.Tiles(open); err != nil {
			t.Fatalf("after step %d: %v", i, err)
		}
		if next := p.Next(open); next != i {
			t.Fatalf("after step %d of %d the next one is %d", i, len(p.Steps), next)
		}
		if i == len(p.Steps) {
			break
		}
		if p.Reached(open) == nil {
			t.Fatalf("reached after step %d of %d", i, len(p.Steps))
		}
		open = takeStep(t, open, p.Steps[i])
	}
	if err := errors.Join(p.Reached(open), p.Validate()); err != nil {
		t.Fatal(err)
	}
	var total, predicted uint64
	for i, shard := range p.Final {
		loads := uint64(0)
		for _, point := range points {
			if shard.Range.Contains(point.At) {
				loads += point.Weight
			}
		}
		if loads != shard.Load {
			t.Fatalf("shard %d: predicted %d, has %d", i, shard.Load, loads)
		}
		predicted += shard.Load
	}
	for _, point := range points {
		total += point.Weight
	}
	if predicted != total {
		t.Fatalf("predicted %d of %d", predicted, total)
	}
}

// A plan for a load leaves no shard above the target that a cut could mend, merges whatever
// fits, and has nothing more to do where it ended.
func TestPlanLoad(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		open, points := planLayout(t, 12), planPoints(t)
		goal := plan.Goal{
			Target:    rapid.Uint64Range(1, 600).Draw(t, "target"),
			MinShards: rapid.IntRange(0, 5).Draw(t, "least"),
		}
		goal.MergeUnder = rapid.Uint64Range(0, goal.Target).Draw(t, "merge under")
		p, err := plan.ForLoad(open, points, goal)
		if err != nil {
			t.Fatal(err)
		}
		checkPlan(t, p, open, points)
		var loads []uint64
		for _, shard := range p.Final {
			in := map[keyspace.Key]bool{}
			for _, point := range points {
				if shard.Range.Contains(point.At) && point.Weight > 0 {
					in[point.At] = true
				}
			}
			if shard.Load > goal.Target && len(in) > 1 {
				t.Fatalf("%s has %d hash keys of %d, the target is %d",
					shard.Range, len(in), shard.Load, goal.Target)
			}
			loads = append(loads, shard.Load)
		}
		if merges := goal.MergeUnder > 0 && slices.Max(append(loads, 0)) > 0; merges {
			for i := 1; i < len(loads) && len(loads) > max(1, goal.MinShards); i++ {
				if loads[i-1]+loads[i] <= goal.MergeUnder {
					t.Fatalf("%d and %d are not merged: %v", i-1, i, loads)
				}
			}
		}
		if len(p.Final) < min(len(open), goal.MinShards) {
			t.Fatalf("%d shards of %d are left", len(p.Final), len(open))
		}
		layout := make([]keyspace.Range, len(p.Final))
		for i, shard := range p.Final {
			layout[i] = shard.Range
		}
		again, err := plan.ForLoad(layout, points, goal)
		if err != nil || len(again.Steps) > 0 || p.Reached(layout) != nil {
			t.Fatalf("planned again: %v, %v", again.Steps, err)
		}
	})
}

// One overloaded shard is split into the fewest pieces that do, and of those the ones with the
// lowest peak: found here by trying all cuts.
func TestPlanLoadIsBest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		weights := rapid.SliceOfN(rapid.Uint64Range(1, 30), 2, 9).Draw(t, "weights")
		target := rapid.Uint64Range(slices.Max(weights), 120).Draw(t, "target")
		var points []load.Point
		for i, w := range weights {
			points = append(points, load.Point{At: keyspace.Key{Hi: uint64(i+1) << 32}, Weight: w})
		}
		type cost struct{ pieces, peak uint64 }
		best := cost{pieces: 99}
		for set := range 1 << (len(weights) - 1) {
			c, sum := cost{pieces: 1}, uint64(0)
			for i, w := range weights {
				if i > 0 && set>>(i-1)&1 == 1 {
					c.pieces, sum = c.pieces+1, 0
				}
				sum += w
				c.peak = max(c.peak, sum)
			}
			if c.peak <= target && (c.pieces < best.pieces ||
				c.pieces == best.pieces && c.peak < best.peak) {
				best = c
			}
		}
		p, err := plan.ForLoad([]keyspace.Range{keyspace.All()}, points,
			plan.Goal{Target: target})
		if err != nil {
			t.Fatal(err)
		}
		peak := slices.MaxFunc(p.Final, func(a, b plan.Shard) int {
			return cmp.Compare(a.Load, b.Load)
		}).Load
		if got := (cost{uint64(len(p.Final)), peak}); got != best {
			t.Fatalf("%v pieces and peak, the best is %v", got, best)
		}
	})
}

// A hot key gets a shard of its own and is named; the rest comes below the target.
func TestPlanLoadHotKey(t *testing.T) {
	points := []load.Point{
		{At: keyspace.Key{Hi: 1 << 40}, Weight: 6},
		{At: keyspace.Key{Hi: 1 << 50}, Weight: 90},
		{At: keyspace.Key{Hi: 1 << 60}, Weight: 7},
	}
	p, err := plan.ForLoad([]keyspace.Range{keyspace.All()}, points, plan.Goal{Target: 20})
	if err != nil || len(p.Steps) != 2 || len(p.Final) != 3 || p.Final[1].Load != 90 ||
		!slices.Equal(p.TooHot, points[1:2]) {
		t.Errorf("%+v, %v", p, err)
	}
	// Points of one hash key cannot be cut apart, and a shard of two hash keys cannot be split.
	for i := range points {
		points[i].At = keyspace.Max()
	}
	p, err = plan.ForLoad([]keyspace.Range{keyspace.All()}, points, plan.Goal{Target: 20})
	if err != nil || len(p.Steps) != 0 {
		t.Errorf("%+v, %v", p, err)
	}
}

// Where hash keys stand side by side, no cut is planned that SplitShard refuses.
func TestPlanLoadCutsByTheRules(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var points []load.Point
		for range rapid.IntRange(1, 12).Draw(t, "points") {
			at := keyspace.Key{Lo: rapid.Uint64Range(0, 8).Draw(t, "at")}
			if rapid.Bool().Draw(t, "high") {
				at = keyspace.Max().Sub(at)
			}
			points = append(points, load.Point{At: at, Weight: 1})
		}
		open := []keyspace.Range{keyspace.All()}
		p, err := plan.ForLoad(open, points, plan.Goal{Target: 1})
		if err != nil {
			t.Fatal(err)
		}
		checkPlan(t, p, open, points)
	})
}

func TestPlanLoadRefuses(t *testing.T) {
	for _, goal := range []plan.Goal{{}, {Target: 3, MergeUnder: 4}, {Target: 1, MinShards: -1}} {
		if p, err := plan.ForLoad(keyspace.Uniform(2), nil, goal); err == nil {
			t.Errorf("%+v: %v", goal, p)
		}
	}
	if _, err := plan.ForLoad(keyspace.Uniform(2)[1:], nil, plan.Goal{Target: 1}); err == nil {
		t.Error("half of the key space was planned for")
	}
	idle, err := plan.ForLoad(keyspace.Uniform(4), nil, plan.Goal{Target: 9, MergeUnder: 9})
	if err != nil || len(idle.Steps) != 0 {
		t.Errorf("a stream that was not seen: %v, %v", idle.Steps, err)
	}
}

// A uniform plan has a step for each bound that is wrong or missing, and no other.
func TestPlanUniform(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		open := planLayout(t, 30)
		n := rapid.IntRange(1, 64).Draw(t, "n")
		p, err := plan.Uniform(open, n, 0)
		if err != nil {
			t.Fatal(err)
		}
		checkPlan(t, p, open, nil)
		starts := func(ranges []keyspace.Range) []keyspace.Key {
			keys := make([]keyspace.Key, len(ranges))
			for i, r := range ranges {
				keys[i] = r.Start
			}
			return keys
		}
		before, wanted := starts(open), starts(keyspace.Uniform(n))
		final := make([]keyspace.Key, len(p.Final))
		for i, shard := range p.Final {
			final[i] = shard.Range.Start
		}
		changed := 0
		for _, k := range before {
			if !slices.Contains(final, k) {
				changed++
			}
		}
		for i, k := range final {
			near := func(other keyspace.Key) bool { // within 2^20 hash keys
				d := toBig(other)
				return d.Sub(d, toBig(wanted[i])).CmpAbs(toBig(keyspace.Key{Lo: 1 << 20})) <= 0
			}
			if !near(k) || len(final) != n {
				t.Fatalf("%v are not %d equal shards", p.Final, n)
			}
			if slices.Contains(before, k) {
				continue
			}
			if changed++; slices.ContainsFunc(before[1:], near) {
				t.Fatalf("the bound %s is made, though one is near enough", k)
			}
		}
		if len(p.Steps) != changed {
			t.Fatalf("%d steps for %d bounds that are wrong or missing", len(p.Steps), changed)
		}
		scaled, err := plan.Uniform(open, n, 10)
		if err != nil || len(scaled.Steps) > len(p.Steps) {
			t.Fatalf("%d steps with UpdateShardCount, %d without: %v",
				len(scaled.Steps), len(p.Steps), err)
		}
		checkPlan(t, scaled, open, nil)
	})
}

// UpdateShardCount is used where it is fewer calls, and not more often than it may be.
func TestPlanUniformScales(t *testing.T) {
	for _, c := range []struct {
		from, to, scalings int
		want               []int // shards after each scaling; nil: splits and merges
	}{
		{2, 4, 10, []int{4}},
		{2, 3, 10, []int{3}}, // or a merge and two splits
		{1, 2, 10, nil},      // one split
		{3, 24, 10, []int{6, 12, 24}},
		{3, 24, 2, nil},
		{3, 24, 0, nil},
		{25, 3, 10, []int{13, 7, 4, 3}},
		{4, 4, 10, nil},
	} {
		p, err := plan.Uniform(keyspace.Uniform(c.from), c.to, c.scalings)
		if err != nil {
			t.Fatal(err)
		}
		var got []int
		for _, s := range p.Steps {
			if s.Kind == plan.StepScale {
				got = append(got, s.Shards)
			}
		}
		if !slices.Equal(got, c.want) || len(p.Final) != c.to {
			t.Errorf("%d to %d: %v, want %v", c.from, c.to, got, c.want)
		}
	}
	for _, n := range []int{0, -1, plan.MaxShards + 1} {
		if _, err := plan.Uniform(keyspace.Uniform(2), n, 0); err == nil {
			t.Errorf("%d shards were planned", n)
		}
	}
	p, _ := plan.Uniform(keyspace.Uniform(3), 24, 10)
	if d := p.Duration(time.Second); d != 21*time.Second {
		t.Errorf("three scalings by 21 shards take %s", d)
	}
	if p, _ = plan.Uniform(keyspace.Uniform(3), 6, 0); p.Duration(time.Minute) != 3*time.Minute {
		t.Errorf("three splits take %s", p.Duration(time.Minute))
	}
}

// The texts of steps, and the steps of a layout that does not tile.
func TestStepTexts(t *testing.T) {
	scale := plan.Step{Kind: plan.StepScale, Shards: 4}
	if got := scale.String(); got != "scale to 4 equal shards" || scale.Bound() != (keyspace.Key{}) {
		t.Errorf("%s at %s", got, scale.Bound())
	}
	gap := keyspace.Uniform(2)[1:]
	if _, err := plan.Uniform(gap, 2, 0); err == nil {
		t.Error("a uniform plan of a gap was made")
	}
	if _, err := plan.OneStep(gap, scale); err == nil {
		t.Error("a step of a gap was planned")
	}
	many := plan.Plan{Open: make([]keyspace.Range, plan.MaxShards+1)}
	if err := many.Validate(); err == nil || !strings.Contains(err.Error(), "10000 shards") {
		t.Errorf("too many shards: %v", err)
	}
}
