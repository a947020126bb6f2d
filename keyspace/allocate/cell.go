package allocate

import (
	"github.com/runnel-stream/runnel/keyspace"
)

// cell is an interval of keys, both ends included: the space after some halvings. Each cell has one
// key of its own, its middle. The left half ends below the middle; the right half begins with it.
//
// So the first key of a right half belongs to a cell above and is not free in the half. Key 0 is
// the middle of the cell [0, 0] only. Every key is the middle of exactly one cell, at a depth of at
// most 128 halvings.
type cell struct {
	lo, last keyspace.Key
}

// middle returns lo + floor(width/2).
func (c cell) middle() keyspace.Key {
	span := c.last.Sub(c.lo) // the width less one, since 2^128 does not fit
	return c.lo.Add(span.Half()).Add(keyspace.Key{Lo: span.Lo & 1})
}

// left and right return the halves around the middle. A half without room (see rooms) is not a
// cell.
func (c cell) left(middle keyspace.Key) cell {
	return cell{lo: c.lo, last: middle.Sub(keyspace.Key{Lo: 1})}
}
func (c cell) right(middle keyspace.Key) cell { return cell{lo: middle, last: c.last} }

// rooms returns the number of keys that each half can hold.
func (c cell) rooms(middle keyspace.Key) (left, right keyspace.Key) {
	left = middle.Sub(c.lo)
	if c.lo != (keyspace.Key{}) {
		left = left.Sub(keyspace.Key{Lo: 1}) // the start belongs to a cell above
	}
	return left, c.last.Sub(middle)
}

// contains reports whether k is in the cell.
func (c cell) contains(k keyspace.Key) bool { return !k.Less(c.lo) && !c.last.Less(k) }

// descend returns the half that contains k. k must not be the middle.
func (c cell) descend(k, middle keyspace.Key) cell {
	if k.Less(middle) {
		return c.left(middle)
	}
	return c.right(middle)
}
