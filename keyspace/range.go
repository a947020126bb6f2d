package keyspace

import (
	"fmt"
	"slices"
)

// Range is the hash keys in [Start, End]. Both ends are included, as in the HashKeyRange of the
// API.
type Range struct {
	Start, End Key // Start <= End
}

// All returns the whole key space.
func All() Range { return Range{End: Max()} }

// Contains reports whether k is in the range.
func (r Range) Contains(k Key) bool {
	return !k.Less(r.Start) && !r.End.Less(k)
}

// Adjacent reports whether the two ranges touch without overlapping, in either order. Their union
// is then a range.
func (r Range) Adjacent(other Range) bool {
	return r.Precedes(other) || other.Precedes(r)
}

// Precedes reports whether other begins right after the end of r.
func (r Range) Precedes(other Range) bool {
	return r.End != Max() && r.End.Add(Key{Lo: 1}) == other.Start
}

// Join returns the union of two adjacent ranges. For other ranges the result has no meaning.
func (r Range) Join(other Range) Range {
	if other.Start.Less(r.Start) {
		r, other = other, r
	}
	return Range{Start: r.Start, End: other.End}
}

// Middle returns the hash key that splits the range into halves: the start of the upper half. A
// range of one key has no middle; for it Middle returns Start.
func (r Range) Middle() Key {
	if r.Start == r.End {
		return r.Start
	}
	return r.Start.Add(r.End.Sub(r.Start).Half()).Add(Key{Lo: 1})
}

// SplitAt returns [Start, at-1] and [at, End]. at must be in (Start, End].
func (r Range) SplitAt(at Key) (low, high Range) {
	return Range{Start: r.Start, End: at.Sub(Key{Lo: 1})}, Range{Start: at, End: r.End}
}

// String returns the range as "[start, end]" in decimal.
func (r Range) String() string { return fmt.Sprintf("[%s, %s]", r.Start, r.End) }

// Uniform returns the n ranges of the shards that CreateStream makes: each starts at i *
// floor(2^128 / n), and the last one ends at Max. An n below 1 counts as 1.
func Uniform(n int) []Range {
	if n <= 1 {
		return []Range{All()}
	}
	width := Max().Div(uint64(n)) // floor((2^128-1)/n) = floor(2^128/n) unless n divides 2^128
	if n&(n-1) == 0 {
		width = width.Add(Key{Lo: 1})
	}
	ranges := make([]Range, n)
	start := Key{}
	for i := range ranges {
		next := start.Add(width)
		ranges[i] = Range{Start: start, End: next.Sub(Key{Lo: 1})}
		start = next
	}
	ranges[n-1].End = Max()
	return ranges
}

// Tiles returns nil if the ranges, in any order, cover the whole key space exactly once. Otherwise
// its error names the first gap or overlap.
func Tiles(ranges []Range) error {
	sorted := Sorted(ranges)
	want := Key{}
	for i, r := range sorted {
		switch {
		case r.End.Less(r.Start):
			return fmt.Errorf("the range %s ends before it starts", r)
		case r.Start != want && (i > 0 || want.Less(r.Start)):
			return fmt.Errorf("the hash keys are not tiled: want a range that starts at %s, "+
				"the next is %s", want, r)
		}
		if r.End == Max() {
			if i != len(sorted)-1 {
				return fmt.Errorf("the range %s reaches the end, but %s follows", r, sorted[i+1])
			}
			return nil
		}
		want = r.End.Add(Key{Lo: 1})
	}
	return fmt.Errorf("the hash keys from %s on are not covered", want)
}

// Spread maps the whole key space to the range, in proportion: equal keys stay equal, and evenly
// spread keys stay evenly spread. It looks at the high 64 bits of k only.
func (r Range) Spread(k Key) Key {
	return r.Start.Add(r.End.Sub(r.Start).mulDiv(k.Hi, ^uint64(0)))
}

// Part returns the part of the key space that the range covers, in (0, 1]. It is rounded, so do not
// sum it.
func (r Range) Part() float64 {
	return r.End.Fraction() - r.Start.Fraction() + 0x1p-128
}

// Sorted returns a copy of the ranges, sorted by Start.
func Sorted(ranges []Range) []Range {
	return slices.SortedFunc(slices.Values(ranges), func(a, b Range) int {
		return a.Start.Compare(b.Start)
	})
}

// Locate returns the index of the range that contains the key. The ranges must tile the key space
// and be sorted, as by Sorted. It takes O(log n) steps.
func Locate(ranges []Range, k Key) int {
	at, exact := slices.BinarySearchFunc(ranges, k, func(r Range, k Key) int {
		return r.Start.Compare(k)
	})
	if exact {
		return at
	}
	return at - 1
}
