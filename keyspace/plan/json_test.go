package plan_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/runnel-stream/runnel/keyspace"
	"github.com/runnel-stream/runnel/keyspace/load"
	"github.com/runnel-stream/runnel/keyspace/plan"
)

// A plan is the same after it was written and read.
func TestPlanJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var p plan.Plan
		var err error
		if rapid.Bool().Draw(t, "uniform") {
			p, err = plan.Uniform(planLayout(t, 9), rapid.IntRange(1, 9).Draw(t, "n"), 10)
		} else {
			p, err = plan.ForLoad(planLayout(t, 9), planPoints(t),
				plan.Goal{Target: 80, MergeUnder: 40})
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		var back plan.Plan
		if err := json.Unmarshal(text, &back); err != nil || !reflect.DeepEqual(p, back) {
			t.Fatalf("%s: %v", text, err)
		}
	})
}

const splitPlan = `{"open":[{"startingHashKey":"0",` +
	`"endingHashKey":"340282366920938463463374607431768211455"}],"steps":[{"kind":"split",` +
	`"from":[{"startingHashKey":"0","endingHashKey":"340282366920938463463374607431768211455"}],` +
	`"to":[{"startingHashKey":"0","endingHashKey":"99"},{"startingHashKey":"100",` +
	`"endingHashKey":"340282366920938463463374607431768211455"}]}],"final":[` +
	`{"startingHashKey":"0","endingHashKey":"99","load":1},{"startingHashKey":"100",` +
	`"endingHashKey":"340282366920938463463374607431768211455","load":2}]}`

// An incomplete plan is refused with the reason.
func TestPlanJSONRefuses(t *testing.T) {
	var p plan.Plan
	if err := json.Unmarshal([]byte(splitPlan), &p); err != nil || len(p.Final) != 2 {
		t.Fatal(err)
	}
	for _, c := range []struct{ old, new, want string }{
		{`"open":[`, `"opened":[`, "unknown field"},
		{`"split"`, `"divide"`, "want split, merge or scale"},
		{`"split"`, `"merge"`, "not a merge"},
		{`"split"`, `"scale","shards":2`, "UpdateShardCount"},
		{
			`"to":[{"startingHashKey":"0","endingHashKey":"99"`,
			`"to":[{"startingHashKey":"0","endingHashKey":"98"`, "not a split of its shard",
		},
		{`"startingHashKey":"100"`, `"startingHashKey":"1"`, "not a split that SplitShard can make"},
		{
			`"99","load":1},{"startingHashKey":"100"`, `"98","load":1},{"startingHashKey":"99"`,
			"not those of the plan",
		},
		{`"open":[{"startingHashKey":"0"`, `"open":[{"startingHashKey":"1"`, "tiled"},
		{`"endingHashKey":"99"`, `"endingHashKey":"099"`, "not a hash key"},
		{`"from":[{"startingHashKey":"0"`, `"from":[{"startingHashKey":"5"`, "not a split"},
		{`{"kind"`, `{"kind":"scale","shards":2},{"kind"`, "mixed"},
		{`{"kind"`, `{"kind":"scale","shards":3},{"kind"`, "from 1 shards to 3"},
	} {
		text := strings.Replace(splitPlan, c.old, c.new, 1)
		if err := json.Unmarshal([]byte(text), &p); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.new, err, c.want)
		}
	}
	all, halves := keyspace.All(), keyspace.Uniform(2)
	split := plan.Step{Kind: plan.StepSplit, From: []keyspace.Range{all}, To: halves}
	merge := plan.Step{Kind: plan.StepMerge, From: halves, To: []keyspace.Range{all}}
	there := plan.Plan{
		Open: []keyspace.Range{all}, Steps: []plan.Step{split, merge},
		Final: []plan.Shard{{Range: all}},
	}
	if err := there.Validate(); err == nil || !strings.Contains(err.Error(), "a second time") {
		t.Errorf("there and back: %v", err)
	}
	for _, step := range []plan.Step{merge, {
		Kind: plan.StepSplit, From: halves[:1], To: keyspace.Uniform(4)[:2],
	}} {
		if _, err := plan.OneStep(there.Open, step); !errors.Is(err, plan.ErrLayoutDiffers) {
			t.Errorf("%s of another layout: %v", step, err)
		}
	}
	if one, err := plan.OneStep(there.Open, split); err != nil || one.Validate() != nil ||
		one.Reached(halves) != nil {
		t.Errorf("one step: %+v, %v", one, err)
	}
	if len(p.Final) != 2 {
		t.Error("a refused text has changed the plan")
	}
}

func FuzzPlanJSON(f *testing.F) {
	f.Add([]byte(splitPlan))
	f.Add([]byte(`{"open":[],"steps":[{"kind":"scale","shards":2}],"final":[]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var p plan.Plan
		if json.Unmarshal(text, &p) != nil {
			return
		}
		if err := p.Validate(); err != nil {
			t.Fatal(err)
		}
		again, err := json.Marshal(p)
		if err == nil {
			err = json.Unmarshal(again, &p)
		}
		if err != nil {
			t.Fatalf("%s: %v", again, err)
		}
	})
}

func BenchmarkPlan(b *testing.B) {
	open := keyspace.Uniform(plan.MaxShards)
	histogram := load.NewHistogram(1 << 17)
	for i := range 200_000 {
		k := keyspace.Of(string(rune(i)) + "k")
		histogram.Add(k, 1+k.Hi%100)
	}
	points := histogram.Points()
	b.Run("load", func(b *testing.B) {
		for b.Loop() {
			p, err := plan.ForLoad(open, points, plan.Goal{Target: 1100, MergeUnder: 1000})
			if err != nil || len(p.Steps) == 0 {
				b.Fatal(err)
			}
			b.ReportMetric(float64(len(p.Steps)), "steps")
		}
	})
	b.Run("uniform", func(b *testing.B) {
		for b.Loop() {
			p, err := plan.Uniform(open, 7919, 0)
			if err != nil || len(p.Steps) == 0 {
				b.Fatal(err)
			}
			b.ReportMetric(float64(len(p.Steps)), "steps")
		}
	})
}
