// Package load measures the load of a stream by hash key, in bounded memory: a Histogram of the key
// space, from which package plan plans reshards; the Skew of the load over the shards of a layout;
// and the heaviest partition keys (Heavy), which no split can spread. It is pure: no I/O, no
// goroutine, no clock. Weights have any unit, such as bytes or records, that all calls of one value
// share.
package load

import (
	"cmp"
	"slices"

	"github.com/runnel-stream/runnel/keyspace"
)

// Heavy finds the heaviest names of a sequence of (name, weight) in bounded memory. It is the
// Space-Saving sketch with weights instead of ones (Metwally, Agrawal and El Abbadi, "Efficient
// Computation of Frequent and Top-k Elements in Data Streams", ICDT 2005).
//
// If all counters are used, a new name replaces the lightest counted name and inherits its weight,
// which becomes the new name's known error. With c counters and a total weight W, every name
// heavier than W/c has a counter. A counter's weight is never too low, and too high by at most W/c.
//
// It is not safe for concurrent use.
type Heavy struct {
	total    uint64
	counters heavyHeap
	byName   map[string]*HeavyName
}

// HeavyName is a name with a counter. Its true weight is in [Weight-Error, Weight].
type HeavyName struct {
	Name   string       // the partition key
	Hash   keyspace.Key // its hash key
	Weight uint64       // an upper bound
	Error  uint64       // the inherited part of Weight

	at int // index in the heap
}

// NewHeavy returns a sketch with the given number of counters. A counter takes some 150 bytes and
// its name. With 0 counters (or fewer) the sketch knows the total only.
func NewHeavy(counters int) *Heavy {
	counters = max(counters, 0)
	return &Heavy{
		counters: make(heavyHeap, 0, counters), byName: make(map[string]*HeavyName, counters),
	}
}

// Add adds the weight of a name and its hash key. The hash key of a name must always be the same:
// the first one is kept. A weight of 0 changes nothing.
func (h *Heavy) Add(hash keyspace.Key, name string, weight uint64) {
	if weight == 0 {
		return
	}
	h.total = plus(h.total, weight)
	if c, counted := h.byName[name]; counted {
		c.Weight = plus(c.Weight, weight)
		h.counters.down(c)
		return
	}
	if len(h.counters) < cap(h.counters) {
		c := &HeavyName{Name: name, Hash: hash, Weight: weight}
		h.byName[name] = c
		h.counters = append(h.counters, c)
		h.counters.up(c)
		return
	}
	if len(h.counters) == 0 {
		return
	}
	c := h.counters[0]
	delete(h.byName, c.Name)
	c.Name, c.Hash, c.Error, c.Weight = name, hash, c.Weight, plus(c.Weight, weight)
	h.byName[name] = c
	h.counters.down(c)
}

// Total returns the weight of all names, with and without counters. It saturates at 2^64-1.
func (h *Heavy) Total() uint64 { return h.total }

// Top returns up to n names, those with the highest sure weight (AtLeast) first.
func (h *Heavy) Top(n int) []HeavyName {
	names := make([]HeavyName, len(h.counters))
	for i, c := range h.counters {
		names[i] = *c
	}
	slices.SortFunc(names, func(a, b HeavyName) int {
		return cmp.Or(cmp.Compare(b.AtLeast(), a.AtLeast()), cmp.Compare(b.Weight, a.Weight),
			cmp.Compare(a.Name, b.Name))
	})
	return names[:min(max(n, 0), len(names))]
}

// AtMost returns an upper bound for the weight of every name: the highest weight of a counter.
// Without counters it is Total.
func (h *Heavy) AtMost() uint64 {
	if cap(h.counters) == 0 {
		return h.total
	}
	most := uint64(0)
	for _, c := range h.counters {
		most = max(most, c.Weight)
	}
	return most
}

// AtLeast returns the lower bound of the true weight.
func (n HeavyName) AtLeast() uint64 { return n.Weight - n.Error }

// heavyHeap is a binary heap with the lightest counter first: the children of index i are at 2i+1
// and 2i+2 and not lighter. It replaces container/heap because its speed bounds the reading of
// keys.
type heavyHeap []*HeavyName

// up moves a counter from the end of the heap to its place.
func (h heavyHeap) up(c *HeavyName) {
	i := len(h) - 1
	for i > 0 && c.Weight < h[(i-1)/2].Weight {
		h.set(i, h[(i-1)/2])
		i = (i - 1) / 2
	}
	h.set(i, c)
}

// down moves a counter to its place after its weight has grown.
func (h heavyHeap) down(c *HeavyName) {
	i := c.at
	for {
		child := 2*i + 1
		if right := child + 1; right < len(h) && h[right].Weight < h[child].Weight {
			child = right
		}
		if child >= len(h) || h[child].Weight >= c.Weight {
			break
		}
		h.set(i, h[child])
		i = child
	}
	h.set(i, c)
}

func (h heavyHeap) set(i int, c *HeavyName) { h[i], c.at = c, i }

// plus returns a + b, saturated at 2^64-1.
func plus(a, b uint64) uint64 {
	if sum := a + b; sum >= a {
		return sum
	}
	return ^uint64(0)
}
