package keyspace

import (
	"fmt"
	"slices"
)

// Skew is how unevenly load falls on the shards of a layout, and which names make it so. Memory
// is bounded by the shards and the counters. It is not safe for concurrent use.
type Skew struct {
	layout []Range // by hash key
	shards []ShardLoad
	heavy  *Heavy
}

// ShardLoad is what fell on a shard.
type ShardLoad struct {
	Range  Range
	Weight uint64 // as it was added
	Count  uint64 // how often
	// Name is what pictures call it; "" for its number in the layout. A Skew sets none.
	Name string
}

// HotName is one of the heaviest names.
type HotName struct {
	HeavyName
	// Shard is the number of its shard in the layout, by hash key, from 0 on.
	Shard int
	// Alone reports that the name by itself is surely above the limit of a shard: no split
	// will help, only other partition keys.
	Alone bool
}

// SkewReport is a Skew in numbers.
type SkewReport struct {
	Shards []ShardLoad // by hash key
	Total  uint64
	Peak   uint64  // of the shard with the most
	Mean   float64 // of all shards
	// PeakToMean is 1 when all shards have the same, and the number of shards when one has all.
	// It is 1 without any load.
	PeakToMean float64
	// Gini is the Gini coefficient of the shards' weights: 0 when all have the same, up to
	// 1 - 1/shards when one has all.
	Gini float64
	Hot  []HotName // heaviest first
	// AtMost is what no name weighs more than, also of those that are not hot.
	AtMost uint64
	Limit  uint64 // as it was given; 0 is none
	Over   int    // how many shards are above it
}

// NewSkew returns the Skew of a layout, ranges that tile the key space in any order, with so
// many counters for the heaviest names, 0 for none; see Heavy. It fails when the ranges do not
// tile.
func NewSkew(layout []Range, counters int) (*Skew, error) {
	if err := Tiles(layout); err != nil {
		return nil, fmt.Errorf("the layout of the shards: %w", err)
	}
	s := &Skew{layout: sortedRanges(layout), heavy: NewHeavy(counters)}
	s.shards = make([]ShardLoad, len(layout))
	for i, r := range s.layout {
		s.shards[i].Range = r
	}
	return s, nil
}

// Add lets the weight of a name fall on its hash key. A weight of 0 counts as a time only.
func (s *Skew) Add(hash Key, name string, weight uint64) {
	shard := &s.shards[rangeOf(s.layout, hash)]
	shard.Weight = plus(shard.Weight, weight)
	shard.Count++
	s.heavy.Add(hash, name, weight)
}

// Total returns the weight of all names.
func (s *Skew) Total() uint64 { return s.heavy.Total() }

// Report returns the numbers as they are, with up to top names. limit is what a shard can take,
// in the unit of the weights; 0 is no limit.
func (s *Skew) Report(limit uint64, top int) SkewReport {
	r := SkewReport{
		Shards: slices.Clone(s.shards), Total: s.heavy.Total(), PeakToMean: 1,
		AtMost: s.heavy.AtMost(), Limit: limit,
	}
	weights := make([]uint64, len(r.Shards))
	var sum float64
	for i, shard := range r.Shards {
		weights[i] = shard.Weight
		r.Peak = max(r.Peak, shard.Weight)
		sum += float64(shard.Weight)
		if limit > 0 && shard.Weight > limit {
			r.Over++
		}
	}
	if r.Mean = sum / float64(len(weights)); sum > 0 {
		r.PeakToMean = float64(r.Peak) / r.Mean
	}
	r.Gini = gini(weights)
	for _, name := range s.heavy.Top(top) {
		r.Hot = append(r.Hot, HotName{
			HeavyName: name, Shard: rangeOf(s.layout, name.Hash),
			Alone: limit > 0 && name.AtLeast() > limit,
		})
	}
	return r
}

// gini is the mean difference of two weights over twice their mean.
func gini(weights []uint64) float64 {
	slices.Sort(weights)
	var sum, ranked float64
	for i, w := range weights {
		sum += float64(w)
		ranked += float64(i+1) * float64(w)
	}
	if sum == 0 {
		return 0
	}
	n := float64(len(weights))
	return max(0, 2*ranked/(n*sum)-(n+1)/n)
}

// sortedRanges returns the ranges by hash key.
func sortedRanges(ranges []Range) []Range {
	return slices.SortedFunc(slices.Values(ranges), func(a, b Range) int {
		return a.Start.Compare(b.Start)
	})
}

// rangeOf returns which of the ranges, that tile the key space in order, has the key.
func rangeOf(ranges []Range, k Key) int {
	at, exact := slices.BinarySearchFunc(ranges, k, func(r Range, k Key) int {
		return r.Start.Compare(k)
	})
	if exact {
		return at
	}
	return at - 1
}
