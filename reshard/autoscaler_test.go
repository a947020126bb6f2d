package reshard_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/keyspace"
	"github.com/runnel-stream/runnel/keyspace/load"
	"github.com/runnel-stream/runnel/reshard"
)

// drawLoad draws a load of a few keys or many, some of them heavy, that is up to so many shards'
// in bytes or in records.
func drawLoad(t *rapid.T, most float64) []load.Point {
	rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "keys"), 0))
	n := rapid.IntRange(1, 80).Draw(t, "how many")
	heavy := rapid.IntRange(0, 3).Draw(t, "heavy")
	bytes, records := make([]float64, n), make([]float64, n)
	var sumBytes, sumRecords float64
	for i := range n {
		bytes[i], records[i] = rng.Float64(), rng.Float64()
		if i < heavy {
			bytes[i] *= float64(n)
		}
		sumBytes += bytes[i]
		sumRecords += records[i]
	}
	scale := rapid.Float64Range(0.001, most).Draw(t, "load") / max(sumBytes, sumRecords)
	histogram := load.NewHistogram(1 << 16)
	for i := range n {
		histogram.AddPoint(load.Point{
			At:     keyspace.Of(fmt.Sprint("k", rng.IntN(10*n))),
			Weight: uint64(bytes[i] * scale * reshard.ShardBytes),
			Also:   uint64(1000 * records[i] * scale * reshard.ShardRecords),
		})
	}
	return histogram.Points()
}

func drawPolicy(t *rapid.T) reshard.Policy {
	p := reshard.Policy{
		SplitAbove: rapid.Float64Range(0.3, 0.95).Draw(t, "split above"),
		MinShards:  rapid.IntRange(1, 4).Draw(t, "min"),
		MaxSteps:   rapid.SampledFrom([]int{1, 3, 16}).Draw(t, "steps"),
	}
	p.Target = p.SplitAbove * rapid.Float64Range(0.5, 1).Draw(t, "target")
	p.MergeUnder = p.Target * rapid.Float64Range(0.01, 0.98).Draw(t, "merge under")
	p.MaxShards = p.MinShards + rapid.IntRange(0, 20).Draw(t, "max")
	p.SplitWindows = rapid.IntRange(1, 3).Draw(t, "split windows")
	p.SplitOf = p.SplitWindows + rapid.IntRange(0, 2).Draw(t, "of")
	p.MergeWindows = rapid.IntRange(1, 6).Draw(t, "merge windows")
	p.MergeCooldown = time.Duration(rapid.IntRange(1, 10).Draw(t, "cooldown")) * time.Minute
	return p
}

func drawLayout(t *rapid.T, most int) []keyspace.Range {
	return keyspace.Uniform(rapid.IntRange(1, most).Draw(t, "shards"))
}

func scaled(loads []load.Point, by float64) []load.Point {
	loads = slices.Clone(loads)
	for i := range loads {
		loads[i].Weight = uint64(float64(loads[i].Weight) * by)
		loads[i].Also = uint64(float64(loads[i].Also) * by)
	}
	return loads
}

func newCore(t rapid.TB, p reshard.Policy) *reshard.Autoscaler {
	t.Helper()
	core, err := reshard.NewAutoscaler(p)
	if err != nil {
		t.Fatal(err)
	}
	return core
}

// check judges a decision by its sample: the bounds, the number of steps, and the result of the
// splits and merges.
func check(t *rapid.T, p reshard.Policy, w *world, loads []load.Point, d reshard.Decision) {
	before, after := len(w.shards), len(d.Plan.Final)
	if len(d.Reasons) == 0 {
		t.Fatal("no reason")
	}
	if (d.Action == reshard.ActionHold) != (len(d.Plan.Steps) == 0) || len(d.Plan.Steps) > p.MaxSteps {
		t.Fatalf("%s in %d steps", d.Action, len(d.Plan.Steps))
	}
	for _, step := range d.Plan.Steps {
		if string(step.Kind) != string(d.Action) {
			t.Fatalf("a %s to %s", step.Kind, d.Action)
		}
	}
	if after > max(p.MaxShards, before) || after < min(p.MinShards, before) {
		t.Fatalf("from %d to %d shards, want %d to %d", before, after, p.MinShards, p.MaxShards)
	}
	for _, piece := range d.Plan.Final {
		_, part := share(runnel.Shard{Range: piece.Range}, loads)
		merged := !slices.ContainsFunc(w.shards, func(s runnel.Shard) bool {
			return s.Range == piece.Range
		})
		if d.Action == reshard.ActionMerge && merged && part > p.MergeUnder+1e-6 && w.feed == unlimited {
			t.Fatalf("a merge leads to a shard at %.3f, above %.3f", part, p.MergeUnder)
		}
	}
}

// Under a constant load the shards stop changing after few changes. A shard above the threshold
// then has a single key, or MaxShards are open.
func TestAutoscalerComesToRest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, loads := drawPolicy(t), drawLoad(t, 12)
		w := newWorld(drawLayout(t, p.MaxShards))
		w.feed = feed(rapid.IntRange(0, 3).Draw(t, "feed"))
		core, changes := newCore(t, p), 0
		quiet := 3*p.MergeWindows + p.SplitOf + 30
		for still := 0; still < quiet; still++ {
			d, err := core.Decide(w.look(loads))
			if err != nil {
				t.Fatal(err)
			}
			check(t, p, w, loads, d)
			if d.Action != reshard.ActionHold {
				still = -1
				if changes++; changes > 200 {
					t.Fatalf("%d changes, the last for:\n%s", changes, strings.Join(d.Reasons, "\n"))
				}
			}
			w.apply(t, d.Plan)
		}
		for _, s := range w.shards {
			points, part := share(s, loads)
			heaviest := 0.0
			for _, point := range points {
				_, alone := share(runnel.Shard{Range: keyspace.All()}, []load.Point{point})
				heaviest = max(heaviest, alone)
			}
			// A key in the middle of its shard takes two splits to be alone.
			if p.MaxSteps == 1 || len(w.shards)+1 == p.MaxShards {
				heaviest = max(heaviest, fairest(points))
			}
			if part > p.SplitAbove+1e-6 && heaviest < 0.9*part-1e-6 && len(w.shards) < p.MaxShards {
				t.Fatalf("%s is left at %.3f of %.3f, its heaviest key at %.3f", s.ID, part,
					p.SplitAbove, heaviest)
			}
		}
	})
}

// fairest returns the load of the larger part where points are cut in two as evenly as they can be.
func fairest(points []load.Point) float64 {
	everywhere := runnel.Shard{Range: keyspace.All()}
	_, least := share(everywhere, points)
	for i := range points {
		_, left := share(everywhere, points[:i])
		_, right := share(everywhere, points[i:])
		least = min(least, max(left, right))
	}
	return least
}

// A load that comes and goes within the band between MergeUnder and SplitAbove, at any times,
// changes nothing once the shards fit its high tide, but that neighbours are merged; nothing is
// split again.
func TestAutoscalerDoesNotFlap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, loads := drawPolicy(t), drawLoad(t, 8)
		w := newWorld(drawLayout(t, p.MaxShards))
		p.MaxShards = 1000 // a merge makes no room for a split that waits
		core := newCore(t, p)
		for still := 0; still < 2*p.MergeWindows+p.SplitOf+20; still++ {
			if w.round(t, core, loads).Action != reshard.ActionHold {
				still = -1
			}
		}
		// A split that did not help at the highest load may help at a lower one.
		fits := !slices.ContainsFunc(w.shards, func(s runnel.Shard) bool {
			_, part := share(s, loads)
			return part > p.SplitAbove
		})
		low := p.MergeUnder / p.SplitAbove
		for range rapid.IntRange(1, 8).Draw(t, "tides") {
			tide := rapid.SampledFrom([]float64{1, low * 1.001, 0}).Draw(t, "tide")
			if tide == 0 {
				tide = rapid.Float64Range(low*1.001, 1).Draw(t, "between")
			}
			for range rapid.IntRange(1, 40).Draw(t, "windows") {
				if d := w.round(t, core, scaled(loads, tide)); d.Action == reshard.ActionSplit && fits {
					t.Fatalf("split again at %.3f of the load:\n%s", tide,
						strings.Join(d.Reasons, "\n"))
				}
			}
		}
	})
}

// A load that is spread evenly and swings within the band changes the shards once at most.
func TestAutoscalerSwings(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(t, "shards")
		high := rapid.Float64Range(0.4, 0.77).Draw(t, "high")
		low := rapid.Float64Range(0.18, high).Draw(t, "low")
		w, core, changes := newWorld(keyspace.Uniform(n)), newCore(t, reshard.Policy{}), 0
		for range rapid.IntRange(2, 10).Draw(t, "swings") {
			for _, part := range []float64{high, low} {
				var loads []load.Point
				for _, r := range keyspace.Uniform(n) {
					loads = append(loads, even(r, 6, part, 0.1)...)
				}
				for range rapid.IntRange(1, 30).Draw(t, "windows") {
					if w.round(t, core, loads).Action != reshard.ActionHold {
						changes++
					}
				}
			}
		}
		if changes > 1 {
			t.Fatalf("%d changes", changes)
		}
	})
}

// After a step up of the load, the split comes after the policy's number of windows, not sooner,
// and the pieces are at the target or below.
func TestAutoscalerAnswers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPolicy(t)
		p.MaxShards, p.MaxSteps = 100, 100
		n := rapid.IntRange(p.MinShards, 5).Draw(t, "shards")
		w, core := newWorld(keyspace.Uniform(n)), newCore(t, p)
		calm := even(keyspace.All(), 100*n, 0.9*p.SplitAbove*float64(n), 0)
		for range rapid.IntRange(1, 5).Draw(t, "calm") {
			if d := w.round(t, core, calm); d.Action == reshard.ActionSplit {
				t.Fatal("split without need")
			}
		}
		n = len(w.shards)
		factor := rapid.Float64Range(1.2, 3).Draw(t, "factor")
		step := even(keyspace.All(), 400, factor*p.SplitAbove*float64(n), 0.1)
		if rapid.Bool().Draw(t, "told") {
			w.feed = byShard
		}
		for window := 1; ; window++ {
			d := w.round(t, core, step)
			if (d.Action == reshard.ActionSplit) != (window == p.SplitWindows) {
				t.Fatalf("window %d of %d: %s", window, p.SplitWindows, d.Action)
			}
			if window < p.SplitWindows {
				continue
			}
			for _, piece := range d.Plan.Final {
				if float64(piece.Load) > p.Target*1e12*1.01 && w.feed == unlimited {
					t.Fatalf("a piece of %.2f, want %.2f at most", float64(piece.Load)/1e12, p.Target)
				}
			}
			return
		}
	})
}

// One key above the threshold, beside which others come and go, is not split for again and
// again.
func TestAutoscalerLeavesAHotKeyAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		w, core, splits := newWorld(keyspace.Uniform(2)), newCore(t, reshard.Policy{}), 0
		hot := rapid.Float64Range(0.85, 3).Draw(t, "hot")
		w.feed = feed(rapid.IntRange(0, 3).Draw(t, "feed"))
		for range 200 {
			histogram := load.NewHistogram(1 << 16)
			histogram.AddPoint(load.Point{
				At: keyspace.Of("hot"), Weight: uint64((hot + 0.05*rng.Float64()) * reshard.ShardBytes),
				Also: 1000,
			})
			for range 20 {
				histogram.AddPoint(load.Point{
					At:     keyspace.Of(fmt.Sprint(rng.Uint64())),
					Weight: uint64(0.02 * rng.Float64() * reshard.ShardBytes), Also: 1000,
				})
			}
			if w.round(t, core, histogram.Points()).Action == reshard.ActionSplit {
				splits++
			}
		}
		if splits > 6 {
			t.Fatalf("%d times in 200 windows", splits)
		}
	})
}

// Refused attempts raise the observed load, by the rule in the comment of throttle.
func TestThrottledLoad(t *testing.T) {
	ids := newWorld(keyspace.Uniform(3)).shards
	for _, c := range []struct {
		seen      [3]float64 // of a shard's records
		throttled reshard.Throttled
		peak      float64
	}{
		{seen: [3]float64{1, 0.2, 0}, peak: 1},
		// Stored by the sample: 30,000 of a full shard in 30 s.
		{seen: [3]float64{1, 0.2, 0}, throttled: reshard.Throttled{Refused: 6_000}, peak: 1.2},
		{seen: [3]float64{1, 0.2, 0}, throttled: reshard.Throttled{Refused: 90_000}, peak: 1.26},
		// Where more than that was seen, it stays.
		{seen: [3]float64{1.4, 0.2, 0}, throttled: reshard.Throttled{Refused: 90_000}, peak: 1.4},
		// At its limit, whatever the average says.
		{seen: [3]float64{0.5, 0.2, 0}, throttled: reshard.Throttled{Refused: 1_500}, peak: 1.1},
		// In the feed's own unit: a fifth more than was stored.
		{
			seen:      [3]float64{1, 0, 0},
			throttled: reshard.Throttled{Stored: 1000, Refused: 200}, peak: 1.2,
		},
		// The shards that are full share it, by their load: each grows by a tenth.
		{seen: [3]float64{1, 1, 0.2}, throttled: reshard.Throttled{Refused: 6_000}, peak: 1.1},
		// Few, and at little load: nothing.
		{seen: [3]float64{0.9, 0.2, 0}, throttled: reshard.Throttled{Refused: 20}, peak: 0.9},
		{seen: [3]float64{0.3, 0.2, 0}, throttled: reshard.Throttled{Refused: 9000}, peak: 0.3},
		// Counts by shard raise the load of that shard.
		{
			seen: [3]float64{0.6, 0.4, 0}, peak: 1.25,
			throttled: reshard.Throttled{
				Refused: 3000, Shards: map[runnel.ShardID]uint64{ids[1].ID: 3000},
			},
		},
	} {
		w := newWorld(keyspace.Uniform(3))
		var loads []load.Point
		for i, part := range c.seen {
			loads = append(loads, even(w.shards[i].Range, 10, 0, part)...)
		}
		s := w.look(loads)
		s.Throttled = c.throttled
		d, err := newCore(t, reshard.Policy{}).Decide(s)
		if err != nil || d.Peak < c.peak-0.001 || d.Peak > c.peak+0.001 {
			t.Errorf("%v, %+v: the peak is %.3f, want %.3f: %v", c.seen, c.throttled, d.Peak, c.peak, err)
		}
	}
}

// Samples that make no sense are refused, and not counted.
func TestAutoscalerRefuses(t *testing.T) {
	w, core := newWorld(keyspace.Uniform(2)), newCore(t, reshard.Policy{SplitWindows: 1})
	hot := even(keyspace.All(), 100, 3, 0)
	bad := w.look(hot)
	bad.Took = 0
	gap := w.look(hot)
	gap.Shards = gap.Shards[1:]
	for _, s := range []reshard.Sample{bad, gap, {}} {
		if d, err := core.Decide(s); err == nil {
			t.Errorf("decided %s", d.Action)
		}
	}
	closed := w.look(hot)
	closed.Shards = append(slices.Clone(closed.Shards), runnel.Shard{Range: keyspace.All(), Last: "49"})
	if d, err := core.Decide(closed); err != nil || d.Action != reshard.ActionSplit {
		t.Errorf("with a closed shard: %v, %v", d, err)
	}
}

// Every field out of range is named; the defaults are in range.
func TestPolicyValidate(t *testing.T) {
	if err := (reshard.Policy{}).Validate(); err != nil {
		t.Error(err)
	}
	for field, p := range map[string]reshard.Policy{
		"SplitAbove":    {SplitAbove: 1.1},
		"Target":        {Target: 0.9},
		"MergeUnder":    {MergeUnder: 0.75},
		"SplitWindows":  {SplitWindows: 4, SplitOf: 3},
		"SplitOf":       {SplitOf: 1001},
		"MergeWindows":  {MergeWindows: -1},
		"SplitCooldown": {SplitCooldown: -1},
		"MinShards":     {MinShards: 5, MaxShards: 4},
		"MaxShards":     {MaxShards: 10_001},
		"MaxSteps":      {MaxSteps: -1},
		"ShardBytes":    {ShardBytes: -1},
		"ShardRecords":  {ShardRecords: -1},
	} {
		err := p.Validate()
		if err == nil || !strings.Contains(err.Error(), field+" is ") && field != "SplitOf" ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", field, err)
		}
		if _, err := reshard.NewAutoscaler(p); err == nil {
			t.Errorf("%s: an autoscaler was made", field)
		}
	}
	all := reshard.Policy{SplitAbove: -1, MinShards: -1, MaxSteps: -1, ShardBytes: -1}
	if n := strings.Count(all.Validate().Error(), "\n"); n < 3 {
		t.Errorf("only %d faults: %v", n+1, all.Validate())
	}
}

// BenchmarkDecide decides for 1,000 shards of which a half is hot, from as many points as a sample
// has at most.
func BenchmarkDecide(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	layout := keyspace.Uniform(1000)
	histogram := load.NewHistogram(1 << 17)
	for i := range 1 << 17 {
		part := 0.5
		if r := layout[i%1000]; r.Start.Hi>>63 == 1 {
			part = 1.2
		}
		histogram.AddPoint(load.Point{
			At:     layout[i%1000].Spread(keyspace.Key{Hi: rng.Uint64()}),
			Weight: uint64(part * reshard.ShardBytes / 131), Also: 1000,
		})
	}
	w := newWorld(layout)
	w.feed = byShard
	sample := w.look(histogram.Points())
	for b.Loop() {
		core := newCore(b, reshard.Policy{SplitWindows: 1, MaxShards: 2000, MaxSteps: 100})
		if d, err := core.Decide(sample); err != nil || len(d.Plan.Steps) != 100 {
			b.Fatal(d.Action, err)
		}
	}
}
