package load_test

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/runnel-stream/runnel/keyspace"
	"github.com/runnel-stream/runnel/keyspace/load"
)

// The sketch keeps the bounds of its paper: no weight is too low, none is too high by more than
// total over counters, and every name that is heavier than that has a counter.
func TestHeavy(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		counters := rapid.IntRange(1, 40).Draw(t, "counters")
		heavy, exact := load.NewHeavy(counters), map[string]uint64{}
		var total uint64
		for range rapid.IntRange(0, 200).Draw(t, "adds") {
			name := fmt.Sprint(rapid.IntRange(0, 5).Draw(t, "a") * rapid.IntRange(0, 9).Draw(t, "b"))
			weight := rapid.Uint64Range(0, 20).Draw(t, "weight")
			heavy.Add(keyspace.Of(name), name, weight)
			exact[name] += weight
			total += weight
		}
		if heavy.Total() != total {
			t.Fatalf("the total is %d, want %d", heavy.Total(), total)
		}
		top := heavy.Top(1000)
		if len(top) > counters {
			t.Fatalf("%d counters, want %d", len(top), counters)
		}
		counted := map[string]bool{}
		for _, n := range top {
			counted[n.Name] = true
			if n.Weight < exact[n.Name] || n.AtLeast() > exact[n.Name] ||
				n.Error > total/uint64(counters) || n.Hash != keyspace.Of(n.Name) {
				t.Fatalf("%+v weighs %d of %d", n, exact[n.Name], total)
			}
		}
		for name, weight := range exact {
			if weight > heavy.AtMost() {
				t.Fatalf("%s weighs %d, and none is said to weigh more than %d", name, weight,
					heavy.AtMost())
			}
			if weight > total/uint64(counters) && !counted[name] {
				t.Fatalf("%s weighs %d of %d and is not counted", name, weight, total)
			}
		}
		if len(exact) <= counters && len(top) > 0 && heavy.AtMost() != top[0].Weight {
			t.Fatalf("%d is not the weight of %+v", heavy.AtMost(), top[0])
		}
		if !slices.Equal(heavy.Top(2), top[:min(2, len(top))]) || len(heavy.Top(-1)) != 0 {
			t.Fatalf("the top is %v", heavy.Top(2))
		}
	})
	full := load.NewHeavy(1)
	full.Add(keyspace.Key{}, "a", math.MaxUint64)
	full.Add(keyspace.Key{}, "a", 2)
	full.Add(keyspace.Key{}, "b", 2)
	if full.Total() != math.MaxUint64 || full.Top(1)[0].Weight != math.MaxUint64 {
		t.Errorf("an overflow: %+v", full.Top(1))
	}
}

// Without counters the total is known, and no name.
func TestHeavyWithoutCounters(t *testing.T) {
	heavy := load.NewHeavy(-1)
	heavy.Add(keyspace.Key{}, "a", 3)
	heavy.Add(keyspace.Key{}, "b", 4)
	if heavy.Total() != 7 || heavy.AtMost() != 7 || len(heavy.Top(5)) != 0 {
		t.Errorf("%d in all, at most %d, %v", heavy.Total(), heavy.AtMost(), heavy.Top(5))
	}
}

// With a counter for each name a report equals an exact count, on any layout.
func TestSkewIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		layout := keyspace.Uniform(rapid.IntRange(1, 20).Draw(t, "shards"))
		limit := rapid.Uint64Range(0, 60).Draw(t, "limit")
		skew, err := load.NewSkew(layout, 100)
		if err != nil {
			t.Fatal(err)
		}
		names, shards, counts := map[string]uint64{}, make([]uint64, len(layout)), uint64(0)
		var total, peak uint64
		for range rapid.IntRange(0, 60).Draw(t, "adds") {
			name := fmt.Sprint(rapid.IntRange(0, 30).Draw(t, "name"))
			weight := rapid.Uint64Range(0, 9).Draw(t, "weight")
			skew.Add(keyspace.Of(name), name, weight)
			at := slices.IndexFunc(layout, func(r keyspace.Range) bool {
				return r.Contains(keyspace.Of(name))
			})
			names[name] += weight
			shards[at] += weight
			total += weight
			counts++
			peak = max(peak, shards[at])
		}
		report, over := skew.Report(limit, 10), 0
		for i, shard := range report.Shards {
			if shard.Weight != shards[i] || shard.Range != layout[i] {
				t.Fatalf("shard %d: %+v, want %d", i, shard, shards[i])
			}
			counts -= shard.Count
			if limit > 0 && shards[i] > limit {
				over++
			}
		}
		n := float64(len(layout))
		if report.Total != total || skew.Total() != total || counts != 0 || report.Peak != peak ||
			report.Over != over || report.Limit != limit {
			t.Fatalf("%+v; want %d in all, peak %d, %d over", report, total, peak, over)
		}
		if report.PeakToMean < 1 || report.PeakToMean > n*(1+1e-9) || report.Gini < 0 ||
			report.Gini > 1-1/n+1e-9 {
			t.Fatalf("of %g shards: peak to mean %g, Gini %g", n, report.PeakToMean, report.Gini)
		}
		for i, hot := range report.Hot {
			if hot.Weight != names[hot.Name] || hot.Error != 0 ||
				hot.Alone != (limit > 0 && hot.Weight > limit) ||
				!layout[hot.Shard].Contains(keyspace.Of(hot.Name)) ||
				i > 0 && hot.Weight > report.Hot[i-1].Weight {
				t.Fatalf("%d. is %+v, which weighs %d", i, hot, names[hot.Name])
			}
		}
		if len(report.Hot) > 0 && report.AtMost != report.Hot[0].Weight {
			t.Fatalf("none is above %d, want %d", report.AtMost, report.Hot[0].Weight)
		}
	})
}

func skewOf(t *testing.T, shards int, weights ...uint64) load.Report {
	t.Helper()
	layout := keyspace.Uniform(shards)
	slices.Reverse(layout) // any order
	s, err := load.NewSkew(layout, 10)
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(layout)
	for i, w := range weights {
		s.Add(layout[i].End, fmt.Sprint("name-", i), w)
	}
	return s.Report(50, 2)
}

func TestSkew(t *testing.T) {
	r := skewOf(t, 4, 10, 0, 60, 30)
	if r.Total != 100 || r.Peak != 60 || r.Mean != 25 || r.PeakToMean != 2.4 ||
		math.Abs(r.Gini-0.5) > 1e-9 || r.Shards[2].Weight != 60 || r.Shards[1].Count != 1 {
		t.Errorf("got %+v", r)
	}
	if len(r.Hot) != 2 || r.Hot[0].Name != "name-2" || r.Hot[0].Shard != 2 || !r.Hot[0].Alone ||
		r.Hot[1].Alone {
		t.Errorf("hot are %+v", r.Hot)
	}
	if r := skewOf(t, 4, 100); r.PeakToMean != 4 || math.Abs(r.Gini-0.75) > 1e-9 {
		t.Errorf("all on one: %+v", r)
	}
	if r := skewOf(t, 3, 5, 5, 5); r.PeakToMean != 1 || r.Gini > 1e-9 {
		t.Errorf("even: %+v", r)
	}
	if r := skewOf(t, 3); r.PeakToMean != 1 || r.Gini != 0 || len(r.Hot) != 0 {
		t.Errorf("none: %+v", r)
	}
	if _, err := load.NewSkew(keyspace.Uniform(3)[:2], 1); err == nil {
		t.Error("a layout with a gap was taken")
	}
}

// A name that only may be above the limit, by the sketch's error, is not called too hot.
func TestSkewAloneIsSure(t *testing.T) {
	s, _ := load.NewSkew(keyspace.Uniform(1), 1)
	s.Add(keyspace.Key{}, "a", 40)
	s.Add(keyspace.Key{}, "b", 20)
	if hot := s.Report(50, 1).Hot[0]; hot.Name != "b" || hot.Weight != 60 || hot.Alone {
		t.Errorf("got %+v", hot)
	}
}

// BenchmarkSkew adds ten million different keys, of which some are hot, to a layout of 100
// shards: run it with -benchtime 10000000x. kept-KiB is what the sketches hold at the end.
func BenchmarkSkew(b *testing.B) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	s, err := load.NewSkew(keyspace.Uniform(100), 1000)
	if err != nil {
		b.Fatal(err)
	}
	histogram := load.NewHistogram(1 << 16)
	name := make([]byte, 0, 32)
	b.ReportAllocs()
	i := uint64(0)
	for b.Loop() {
		i++
		n := i
		if i%8 == 0 {
			n = i % 20
		}
		name = fmt.Appendf(name[:0], "key-%d", n)
		text := string(name)
		hash := keyspace.Of(text)
		s.Add(hash, text, 100)
		histogram.Add(hash, 100)
	}
	if hot := s.Report(0, 1).Hot; len(hot) == 0 {
		b.Fatal("no key is hot")
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/1024, "kept-KiB")
	b.ReportMetric(float64(len(histogram.Points())), "cells")
}
