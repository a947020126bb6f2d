package load

import (
	"maps"
	"slices"

	"github.com/runnel-stream/runnel/keyspace"
)

// Point is a weight at a hash key, or in the cell of the key space that begins there (see
// Histogram).
type Point struct {
	At     keyspace.Key // the hash key
	Weight uint64       // in the unit of the caller
	// Also is a second weight that a shard limits too, such as records beside bytes, scaled so
	// that a shard's limit is the same number for both. The load of a shard is the larger of its
	// two sums. Default 0: one weight counts.
	Also uint64
}

// Load returns the load of the point for a shard: the larger of Weight and Also.
func (p Point) Load() uint64 { return max(p.Weight, p.Also) }

// Plus returns the point with the weights of other added. The sums saturate at 2^64-1.
func (p Point) Plus(other Point) Point {
	p.Weight, p.Also = plus(p.Weight, other.Weight), plus(p.Also, other.Also)
	return p
}

// Histogram is the distribution of a load over the key space, in bounded memory. It has one cell
// for each hash key while these are few. When they exceed the wanted number of cells, it merges
// cells to a larger equal size, a power of two of hash keys. It is not safe for concurrent use.
type Histogram struct {
	cells map[keyspace.Key]Point
	most  int
	drop  uint // number of low bits of a hash key that are ignored
}

// NewHistogram returns an empty Histogram with at most the given number of cells, at least 2. A
// cell takes some 90 bytes.
func NewHistogram(cells int) *Histogram {
	return &Histogram{cells: map[keyspace.Key]Point{}, most: max(cells, 2)}
}

// Add adds a weight at a hash key. A weight of 0 changes nothing.
func (l *Histogram) Add(hash keyspace.Key, weight uint64) {
	l.AddPoint(Point{At: hash, Weight: weight})
}

// AddPoint adds both weights of a point at its hash key.
func (l *Histogram) AddPoint(p Point) {
	if p.Load() == 0 {
		return
	}
	p.At = floor(p.At, l.drop)
	l.cells[p.At] = p.Plus(l.cells[p.At])
	for len(l.cells) > l.most {
		l.coarsen()
	}
}

// coarsen enlarges the cells until at most half of the wanted number is in use, so that it runs
// seldom.
func (l *Histogram) coarsen() {
	for len(l.cells) > l.most/2 && l.drop < 128 {
		l.drop++
		if l.drop < 64 && len(l.cells) > 64 {
			l.drop = 64 // hash keys are spread: the high half distinguishes them
		}
		merged := make(map[keyspace.Key]Point, l.most)
		for at, cell := range l.cells {
			cell.At = floor(at, l.drop)
			merged[cell.At] = cell.Plus(merged[cell.At])
		}
		l.cells = merged
	}
}

// Points returns the cells that have weight, sorted by hash key. A plan cuts between points, and so
// between cells.
func (l *Histogram) Points() []Point {
	return slices.SortedFunc(maps.Values(l.cells), func(a, b Point) int {
		return a.At.Compare(b.At)
	})
}

// floor returns k with the given number of low bits cleared.
func floor(k keyspace.Key, bits uint) keyspace.Key {
	if bits >= 64 {
		return keyspace.Key{Hi: k.Hi >> (bits - 64) << (bits - 64)}
	}
	return keyspace.Key{Hi: k.Hi, Lo: k.Lo >> bits << bits}
}
