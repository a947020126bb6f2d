package keyspace

import (
	"maps"
	"slices"
)

// Point is a weight that falls on a hash key, or on the cell of the key space that begins with
// it; see Load.
type Point struct {
	At     Key
	Weight uint64
	// Also is the weight of a second thing that is scarce, in a unit that makes one of it as
	// scarce as one of Weight: records beside bytes. A shard's load is the larger of its two
	// sums. 0 where one thing counts.
	Also uint64
}

// load is what the point is for a shard by itself.
func (p Point) load() uint64 { return max(p.Weight, p.Also) }

// plus returns the point with the other's weights added.
func (p Point) plus(other Point) Point {
	p.Weight, p.Also = plus(p.Weight, other.Weight), plus(p.Also, other.Also)
	return p
}

// Load is where in the key space weight falls, in bounded memory: exactly, hash key by hash key,
// as long as these are few, and else by cells of equal size, a power of two of hash keys, which
// grow so that no more than the wanted number of them is in use. It is not safe for concurrent
// use.
type Load struct {
	cells map[Key]Point
	most  int
	drop  uint // low bits of a hash key that are not looked at
}

// NewLoad returns a Load of at most so many cells; at least 2. A cell takes some 90 bytes.
func NewLoad(cells int) *Load {
	return &Load{cells: map[Key]Point{}, most: max(cells, 2)}
}

// Add lets weight fall on a hash key. A weight of 0 is nothing.
func (l *Load) Add(hash Key, weight uint64) { l.AddPoint(Point{At: hash, Weight: weight}) }

// AddPoint lets both weights of a point fall on its hash key.
func (l *Load) AddPoint(p Point) {
	if p.load() == 0 {
		return
	}
	p.At = p.At.floor(l.drop)
	l.cells[p.At] = p.plus(l.cells[p.At])
	for len(l.cells) > l.most {
		l.coarsen()
	}
}

// coarsen makes the cells so large that at most half of the wanted number is in use, so that
// this is seldom done.
func (l *Load) coarsen() {
	for len(l.cells) > l.most/2 && l.drop < 128 {
		l.drop++
		if l.drop < 64 && len(l.cells) > 64 {
			l.drop = 64 // hash keys are spread: the low half tells them apart for nobody
		}
		merged := make(map[Key]Point, l.most)
		for at, cell := range l.cells {
			cell.At = at.floor(l.drop)
			merged[cell.At] = cell.plus(merged[cell.At])
		}
		l.cells = merged
	}
}

// Points returns the cells that have weight, by hash key. A plan that cuts between points cuts
// between cells.
func (l *Load) Points() []Point {
	return slices.SortedFunc(maps.Values(l.cells), func(a, b Point) int {
		return a.At.Compare(b.At)
	})
}

// floor returns k with so many low bits cleared.
func (k Key) floor(bits uint) Key {
	if bits >= 64 {
		return Key{Hi: k.Hi >> (bits - 64) << (bits - 64)}
	}
	return Key{Hi: k.Hi, Lo: k.Lo >> bits << bits}
}

// Spread returns where in the range k would be if the range were the whole key space: equal
// keys stay equal, and those that are spread evenly are so in the range.
func (r Range) Spread(k Key) Key {
	return r.Start.Add(r.End.Sub(r.Start).mulDiv(k.Hi, ^uint64(0)))
}

// Part returns how much of the key space the range has, up to 1: for people, not for sums.
func (r Range) Part() float64 {
	return r.End.fraction() - r.Start.fraction() + 0x1p-128
}
