package load

import (
	"fmt"
	"slices"

	"github.com/runnel-stream/runnel/keyspace"
)

// Skew measures how unevenly load falls on the shards of a layout, and which names cause it. Its
// memory is bounded by the numbers of shards and counters. It is not safe for concurrent use.
type Skew struct {
	layout []keyspace.Range // by hash key
	shards []Shard
	heavy  *Heavy
}

// Shard is the load of one shard.
type Shard struct {
	Range  keyspace.Range // its hash keys
	Weight uint64         // sum of the added weights
	Count  uint64         // number of calls of Add
}

// HotName is one of the heaviest names of a Skew.
type HotName struct {
	HeavyName
	// Shard is the index of its shard in Report.Shards.
	Shard int
	// Alone reports that the name alone is surely above the limit of a shard. No split helps then;
	// the records need more partition keys.
	Alone bool
}

// Report is the numbers of a Skew.
type Report struct {
	Shards []Shard // sorted by hash key
	Total  uint64  // weight of all shards
	Peak   uint64  // highest weight of a shard
	Mean   float64 // mean weight of a shard
	// PeakToMean is Peak / Mean: 1 if all shards have the same weight, the number of shards if one
	// has all of it. It is 1 without load.
	PeakToMean float64
	// Gini is the Gini coefficient of the shards' weights: 0 if all are the same, 1 - 1/shards if
	// one shard has all the weight.
	Gini float64
	Hot  []HotName // the heaviest names, heaviest first
	// AtMost is an upper bound for the weight of every name, in Hot or not.
	AtMost uint64
	Limit  uint64 // the argument of Skew.Report; 0 means none
	Over   int    // number of shards above Limit
}

// NewSkew returns an empty Skew of a layout, with the given number of counters for the heaviest
// names (see NewHeavy). The ranges of the layout tile the key space in any order; otherwise it
// returns the error of keyspace.Tiles.
func NewSkew(layout []keyspace.Range, counters int) (*Skew, error) {
	if err := keyspace.Tiles(layout); err != nil {
		return nil, fmt.Errorf("the layout of the shards: %w", err)
	}
	s := &Skew{layout: keyspace.Sorted(layout), heavy: NewHeavy(counters)}
	s.shards = make([]Shard, len(layout))
	for i, r := range s.layout {
		s.shards[i].Range = r
	}
	return s, nil
}

// Add adds the weight of a name at its hash key. A weight of 0 only increases Shard.Count.
func (s *Skew) Add(hash keyspace.Key, name string, weight uint64) {
	shard := &s.shards[keyspace.Locate(s.layout, hash)]
	shard.Weight = plus(shard.Weight, weight)
	shard.Count++
	s.heavy.Add(hash, name, weight)
}

// Total returns the weight of all names.
func (s *Skew) Total() uint64 { return s.heavy.Total() }

// Report returns the current numbers, with up to top names. limit is the capacity of a shard in the
// unit of the weights; 0 means no limit.
func (s *Skew) Report(limit uint64, top int) Report {
	r := Report{
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
			HeavyName: name, Shard: keyspace.Locate(s.layout, name.Hash),
			Alone: limit > 0 && name.AtLeast() > limit,
		})
	}
	return r
}

// gini returns half the relative mean difference: the mean difference of two weights over twice the
// mean weight.
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
