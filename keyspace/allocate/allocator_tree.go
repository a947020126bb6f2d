package allocate

import (
	"github.com/runnel-stream/runnel/keyspace"
)

// node is a cell with a taken middle, or with taken keys in both halves. A cell with taken keys in
// one half only has no node, since there may be 128 such cells above a key: left and right point to
// the highest nodes in the halves, at any depth. So there are fewer than two nodes for each key,
// and the same keys always make the same nodes.
type node struct {
	cell        cell
	left, right *node
	count       int    // taken keys in the cell
	rate        uint64 // sum of their rates
	own         uint64 // rate of the middle
	taken       bool   // the middle is taken
}

func (n *node) size() int {
	if n == nil {
		return 0
	}
	return n.count
}

func (n *node) load() uint64 {
	if n == nil {
		return 0
	}
	return n.rate
}

// side returns the link to the half that contains k. k must not be the middle.
func (n *node) side(k, middle keyspace.Key) **node {
	if k.Less(middle) {
		return &n.left
	}
	return &n.right
}

// prefersLeft reports whether the next key goes to the left half. The cell is not full and its
// middle is taken. start is the rate of the cell's first key, which belongs to a cell above. The
// first key counts for the left half as the middle counts for the right half.
//
// If all rates are 1, this is left <= right: the first key weighs as much as the middle. The
// leftmost cells have no first key from above; there the left half is lighter exactly if left <=
// right.
func (n *node) prefersLeft(middle keyspace.Key, start uint64) bool {
	leftRoom, rightRoom := n.cell.rooms(middle)
	left, right := n.left.size(), n.right.size()
	switch {
	case keyspace.Key{Lo: uint64(left)} == leftRoom:
		return false
	case keyspace.Key{Lo: uint64(right)} == rightRoom:
		return true
	}
	if l, r := start+n.left.load(), n.own+n.right.load(); l != r {
		return l < r
	}
	return left <= right
}

// takeBest takes the first free middle on the way down through the lighter halves. The space must
// not be full.
func (a *Allocator) takeBest(rate uint64) keyspace.Key {
	at, c, start := &a.root, a.space.cell(), uint64(0)
	for {
		middle := c.middle()
		n := *at
		if n == nil || n.cell != c || !n.taken {
			*at = n.take(c, middle, rate)
			return middle
		}
		if n.prefersLeft(middle, start) {
			at, c = &n.left, c.left(middle)
		} else {
			at, c, start = &n.right, c.right(middle), n.own
		}
		n.count++
		n.rate += rate
	}
}

// insert takes a free key of the space.
func (a *Allocator) insert(r Rated) {
	at, c := &a.root, a.space.cell()
	for {
		middle := c.middle()
		n := *at
		if middle == r.Key {
			*at = n.take(c, middle, r.Rate)
			return
		}
		half := c.descend(r.Key, middle)
		switch {
		case n == nil:
		case n.cell == c:
			n.count++
			n.rate += r.Rate
			at = n.side(r.Key, middle)
		case !half.contains(n.cell.middle()): // the paths part here
			fork := &node{cell: c, count: n.count + 1, rate: n.rate + r.Rate}
			*fork.side(n.cell.middle(), middle) = n
			*at = fork
			at = fork.side(r.Key, middle)
		}
		c = half
	}
}

// take returns the node of a cell after taking its middle. n is the highest node within the cell,
// or nil.
func (n *node) take(c cell, middle keyspace.Key, rate uint64) *node {
	if n == nil || n.cell != c {
		above := &node{cell: c, count: n.size(), rate: n.load()}
		if n != nil {
			*above.side(n.cell.middle(), middle) = n
		}
		n = above
	}
	n.taken = true
	n.own = rate
	n.count++
	n.rate += rate
	return n
}

// remove frees a taken key and drops the nodes that are no longer needed: the node of the key, and
// the node above it if that joined two halves and has only one left.
func (a *Allocator) remove(key keyspace.Key) {
	rate := a.rateOf(key)
	above, at := (**node)(nil), &a.root
	for {
		n := *at
		n.count--
		n.rate -= rate
		middle := n.cell.middle()
		if middle == key {
			n.taken = false
			n.own = 0
			break
		}
		above, at = at, n.side(key, middle)
	}
	(*at).shrink(at)
	if above != nil {
		(*above).shrink(above)
	}
}

// rateOf returns the rate of a taken key.
func (a *Allocator) rateOf(key keyspace.Key) uint64 {
	n := a.root
	for middle := n.cell.middle(); middle != key; middle = n.cell.middle() {
		n = *n.side(key, middle)
	}
	return n.own
}

// shrink replaces a node that has no taken middle by its only child, or by nil.
func (n *node) shrink(at **node) {
	switch {
	case n.taken:
	case n.left == nil:
		*at = n.right
	case n.right == nil:
		*at = n.left
	}
}

// each yields the keys in ascending order until yield returns false, and then returns false too.
func (n *node) each(yield func(Rated) bool) bool {
	if n == nil {
		return true
	}
	if !n.left.each(yield) {
		return false
	}
	if n.taken && !yield(Rated{Key: n.cell.middle(), Rate: n.own}) {
		return false
	}
	return n.right.each(yield)
}
