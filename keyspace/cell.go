package keyspace

// cell is an interval of keys, both ends included: the space, halved again and again. A cell
// has one key of its own, its middle. The left half is what lies below the middle, and the
// right half begins with it.
//
// So the start of a right half is the key of a cell above, and is no longer free below. Only 0
// is the middle of no cell but the last of the left halves, [0, 0]. Every key is the middle of
// exactly one cell, and a cell is at most 128 halvings deep.
type cell struct {
	lo, last Key
}

// middle returns lo + floor(width/2).
func (c cell) middle() Key {
	span := c.last.Sub(c.lo) // the width less one: the widest has no 128-bit number
	return c.lo.Add(span.Half()).Add(Key{Lo: span.Lo & 1})
}

// left and right are the halves around the middle. A half without room (see rooms) is no cell.
func (c cell) left(middle Key) cell  { return cell{lo: c.lo, last: middle.Sub(Key{Lo: 1})} }
func (c cell) right(middle Key) cell { return cell{lo: middle, last: c.last} }

// rooms returns how many keys the halves can hold.
func (c cell) rooms(middle Key) (left, right Key) {
	left = middle.Sub(c.lo)
	if c.lo != (Key{}) {
		left = left.Sub(Key{Lo: 1}) // the start is a key of a cell above
	}
	return left, c.last.Sub(middle)
}

// contains reports whether k is in the cell.
func (c cell) contains(k Key) bool { return !k.Less(c.lo) && !c.last.Less(k) }

// descend returns the half that holds k, which is not the middle.
func (c cell) descend(k, middle Key) cell {
	if k.Less(middle) {
		return c.left(middle)
	}
	return c.right(middle)
}
