package keyspace

// node is a cell of an Allocator's tree whose middle is taken, or that has taken keys in both
// halves. Cells with one such half alone, up to 128 above a key, have no node: left and right
// are the uppermost nodes of the halves, however deep. So there are fewer than two nodes for a
// key, and the nodes are the same for the same keys.
type node struct {
	cell        cell
	left, right *node
	count       int    // keys that are taken in the cell
	rate        uint64 // what they carry
	own         uint64 // what the middle carries of it
	taken       bool   // the middle is
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

// side returns the half of the cell that holds k, which is not the middle.
func (n *node) side(k, middle Key) **node {
	if k.Less(middle) {
		return &n.left
	}
	return &n.right
}

// prefersLeft reports whether the next key is to be in the left half of a cell whose middle is
// taken and that is not full. start is what the cell's start carries, the key of a cell above:
// as the middle is the first key of the right half, so is the start of the left one.
//
// With rates of 1 this comes to left <= right. The start weighs as much as the middle; in the
// leftmost cells, which have none, the left half is lighter for left <= right as well.
func (n *node) prefersLeft(middle Key, start uint64) bool {
	leftRoom, rightRoom := n.cell.rooms(middle)
	left, right := n.left.size(), n.right.size()
	switch {
	case Key{Lo: uint64(left)} == leftRoom:
		return false
	case Key{Lo: uint64(right)} == rightRoom:
		return true
	}
	if l, r := start+n.left.load(), n.own+n.right.load(); l != r {
		return l < r
	}
	return left <= right
}

// takeBest takes the first free middle on the way down the halves that carry less. The space
// is not full.
func (a *Allocator) takeBest(rate uint64) Key {
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

// insert takes a key of the space that is free.
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
		case !half.contains(n.cell.middle()): // the ways part here
			fork := &node{cell: c, count: n.count + 1, rate: n.rate + r.Rate}
			*fork.side(n.cell.middle(), middle) = n
			*at = fork
			at = fork.side(r.Key, middle)
		}
		c = half
	}
}

// take returns the node of a cell with its middle taken; n is the uppermost node within the
// cell so far, or nil.
func (n *node) take(c cell, middle Key, rate uint64) *node {
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

// remove gives back a key that is taken, and drops the nodes that are no longer needed: that of
// the key, and the one above it, if it was there for two halves and one is left.
func (a *Allocator) remove(key Key) {
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

// rateOf returns what a key that is taken carries.
func (a *Allocator) rateOf(key Key) uint64 {
	n := a.root
	for middle := n.cell.middle(); middle != key; middle = n.cell.middle() {
		n = *n.side(key, middle)
	}
	return n.own
}

// shrink puts the only child, or nothing, into the place of a node without a key of its own.
func (n *node) shrink(at **node) {
	switch {
	case n.taken:
	case n.left == nil:
		*at = n.right
	case n.right == nil:
		*at = n.left
	}
}

// each gives the keys in ascending order until yield returns false, which it returns too.
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
