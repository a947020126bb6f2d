package keyspace

import (
	"fmt"
	"slices"
)

// Range is the hash keys in [Start, End], both ends included, as the API's HashKeyRange.
type Range struct {
	Start, End Key
}

// All is the whole key space.
var All = Range{End: Max}

// Contains reports whether k is in the range.
func (r Range) Contains(k Key) bool {
	return !k.Less(r.Start) && !r.End.Less(k)
}

// Adjacent reports whether the two ranges touch without overlapping, in either order, so
// that their union is a range.
func (r Range) Adjacent(other Range) bool {
	return r.Precedes(other) || other.Precedes(r)
}

// Precedes reports whether other begins right after r's end.
func (r Range) Precedes(other Range) bool {
	return r.End != Max && r.End.Add(Key{Lo: 1}) == other.Start
}

// Join returns the union of two adjacent ranges.
func (r Range) Join(other Range) Range {
	if other.Start.Less(r.Start) {
		r, other = other, r
	}
	return Range{Start: r.Start, End: other.End}
}

// Middle returns the hash key that splits the range into halves: the start of the second.
// A range of one key has no middle: it returns Start.
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

// Uniform returns the n ranges that CreateStream gives a stream of n shards: each starts at
// i * floor(2^128 / n), and the last one ends at Max. n must be at least 1.
func Uniform(n int) []Range {
	if n <= 1 {
		return []Range{All}
	}
	width := Max.mulDiv(1, uint64(n)) // floor((2^128-1)/n) = floor(2^128/n) unless n divides 2^128
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
	ranges[n-1].End = Max
	return ranges
}

// Tiles returns nil when the ranges cover the whole key space exactly once, in any order,
// and otherwise an error that names the first gap or overlap.
func Tiles(ranges []Range) error {
	sorted := slices.SortedFunc(slices.Values(ranges), func(a, b Range) int {
		return a.Start.Compare(b.Start)
	})
	want := Key{}
	for i, r := range sorted {
		switch {
		case r.End.Less(r.Start):
			return fmt.Errorf("the range %s ends before it starts", r)
		case r.Start != want && (i > 0 || want.Less(r.Start)):
			return fmt.Errorf("the hash keys are not tiled: want a range that starts at %s, "+
				"the next is %s", want, r)
		}
		if r.End == Max {
			if i != len(sorted)-1 {
				return fmt.Errorf("the range %s reaches the end, but %s follows", r, sorted[i+1])
			}
			return nil
		}
		want = r.End.Add(Key{Lo: 1})
	}
	return fmt.Errorf("the hash keys from %s on are not covered", want)
}
