package keyspace

import (
	"cmp"
	"slices"
)

// Heavy finds the heaviest names of a stream of (name, weight) in bounded memory, by the
// Space-Saving sketch (Metwally, Agrawal and El Abbadi, "Efficient Computation of Frequent and
// Top-k Elements in Data Streams", ICDT 2005), with weights in the place of ones.
//
// A name that is not counted takes the place of the lightest one and inherits its weight, as an
// error that is known. With c counters and a total weight W, every name whose weight is above
// W/c is among the counted, and no weight is told more than W/c too high; none is told too low.
//
// It is not safe for concurrent use.
type Heavy struct {
	total    uint64
	counters heavyHeap
	byName   map[string]*HeavyName
}

// HeavyName is a counted name. Its true weight is in [Weight-Error, Weight].
type HeavyName struct {
	Name   string
	Hash   Key
	Weight uint64
	Error  uint64

	at int // in the heap
}

// NewHeavy returns a sketch of so many counters. A counter takes some 150 bytes and its name.
// Without counters, only the total is known.
func NewHeavy(counters int) *Heavy {
	counters = max(counters, 0)
	return &Heavy{
		counters: make(heavyHeap, 0, counters), byName: make(map[string]*HeavyName, counters),
	}
}

// Add counts a name of that hash key. A name has one hash key: the first one counts. A weight of
// 0 is nothing.
func (h *Heavy) Add(hash Key, name string, weight uint64) {
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

// Total returns the weight of all names, counted or not. It stays at 2^64-1 once it is there.
func (h *Heavy) Total() uint64 { return h.total }

// Top returns up to n names, those first whose weight is surely the highest.
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

// AtMost returns what no name is above: the highest weight told. Without counters it is Total.
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

// AtLeast is what the name surely weighs.
func (n HeavyName) AtLeast() uint64 { return n.Weight - n.Error }

// heavyHeap has the lightest counter first: none is heavier than its children, at twice its place
// plus 1 and plus 2. It is container/heap for this one type: reading keys is bound by it.
type heavyHeap []*HeavyName

// up puts a counter that was added at the end where it belongs.
func (h heavyHeap) up(c *HeavyName) {
	i := len(h) - 1
	for i > 0 && c.Weight < h[(i-1)/2].Weight {
		h.set(i, h[(i-1)/2])
		i = (i - 1) / 2
	}
	h.set(i, c)
}

// down puts a counter that has grown where it belongs.
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

// plus returns a + b, and 2^64-1 where that is more.
func plus(a, b uint64) uint64 {
	if sum := a + b; sum >= a {
		return sum
	}
	return ^uint64(0)
}
