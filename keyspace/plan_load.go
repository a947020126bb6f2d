package keyspace

import "slices"

// Point is a weight that falls on a hash key, or on the cell of the key space that begins with
// it; see Load.
type Point struct {
	At     Key
	Weight uint64
}

// Load is where in the key space weight falls, in bounded memory: exactly, hash key by hash key,
// as long as these are few, and else by cells of equal size, a power of two of hash keys, which
// grow so that no more than the wanted number of them is in use. It is not safe for concurrent
// use.
type Load struct {
	cells map[Key]uint64
	most  int
	drop  uint // low bits of a hash key that are not looked at
}

// NewLoad returns a Load of at most so many cells; at least 2. A cell takes some 60 bytes.
func NewLoad(cells int) *Load {
	return &Load{cells: map[Key]uint64{}, most: max(cells, 2)}
}

// Add lets weight fall on a hash key. A weight of 0 is nothing.
func (l *Load) Add(hash Key, weight uint64) {
	if weight == 0 {
		return
	}
	cell := hash.floor(l.drop)
	l.cells[cell] = plus(l.cells[cell], weight)
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
		merged := make(map[Key]uint64, l.most)
		for at, weight := range l.cells {
			at = at.floor(l.drop)
			merged[at] = plus(merged[at], weight)
		}
		l.cells = merged
	}
}

// Points returns the cells that have weight, by hash key. A plan that cuts between points cuts
// between cells.
func (l *Load) Points() []Point {
	points := make([]Point, 0, len(l.cells))
	for at, weight := range l.cells {
		points = append(points, Point{At: at, Weight: weight})
	}
	slices.SortFunc(points, func(a, b Point) int { return a.At.Compare(b.At) })
	return points
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
