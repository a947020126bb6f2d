package keyspace

import (
	"cmp"
	"fmt"
	"slices"
)

// Move is a key in use that gives way to another one. Whoever has it gets To.
type Move struct {
	From, To Key
	Rate     uint64 // of the one that moves
}

// Rebalance returns the fewest moves after which the numbers of keys are balanced: the halves
// of the space differ by one key at most, their halves too, and so on (for halves of a cell see
// Allocator). There is no shorter list of moves that does it. Rates are of no account; see
// RebalanceScratch and RebalanceShards for those.
//
// Every To is free from the beginning, so the moves may be made in any order. They are sorted by
// From, and by To as well: keys move no further than they must.
//
// The errors wrap ErrOutside or ErrTaken and name the key. It takes about a microsecond a key.
func Rebalance(space Space, assigned []Rated) ([]Move, error) {
	keys := slices.SortedFunc(slices.Values(assigned), func(a, b Rated) int {
		return a.Key.Compare(b.Key)
	})
	for i, r := range keys {
		switch {
		case !space.Contains(r.Key):
			return nil, fmt.Errorf("%w: %s: want 0 to %s", ErrOutside, r.Key, space.Last())
		case i > 0 && keys[i-1].Key == r.Key:
			return nil, fmt.Errorf("%w: %s", ErrTaken, r.Key)
		}
	}
	var p placing
	newSpread(space.cell(), keys, len(keys)).place(0, &p)
	moves := make([]Move, len(p.surplus))
	for i, from := range p.surplus {
		moves[i] = Move{From: from.Key, To: p.vacant[i], Rate: from.Rate}
	}
	return moves, nil
}

// spread is a cell with the keys in it, and how many of these can stay.
//
// Where n keys are balanced, each of the 2^d cells of a depth d holds n/2^d of them, rounded
// down or up. So there are two numbers to try for a cell, low and low+1, and what is best for
// both follows from the two of each half.
type spread struct {
	cell        cell
	keys        []Rated // ascending
	low         int
	left, right *spread // nil in a cell that is not divided
	kept        [2]int  // how many of keys stay at most if it is to hold low, or low+1
}

func newSpread(c cell, keys []Rated, low int) *spread {
	s := &spread{cell: c, keys: keys, low: low}
	if low == 0 || c.lo == c.last {
		for more := range s.kept {
			s.kept[more] = min(low+more, len(keys))
		}
		return s
	}
	middle := c.middle()
	at, _ := search(keys, middle)
	s.left = newSpread(c.left(middle), keys[:at], low/2)
	s.right = newSpread(c.right(middle), keys[at:], low/2)
	for more := range s.kept {
		left, right := s.halves(more)
		s.kept[more] = s.left.kept[left] + s.right.kept[right]
	}
	return s
}

// halves returns which of their two numbers the halves are to hold if the cell holds low+more. Of
// equal ones the right half gets more, as in the order of Nth, where the middle is the first key.
//
// So no half gets more than it has room for: the left one has room for one less at most, and when
// it is to be full, all its keys stay, so that one more would not let more of them stay.
func (s *spread) halves(more int) (left, right int) {
	switch each := (s.low + more) - 2*(s.low/2); each {
	case 0, 2:
		return each / 2, each / 2
	}
	if s.left.kept[0]+s.right.kept[1] >= s.left.kept[1]+s.right.kept[0] {
		return 0, 1
	}
	return 1, 0
}

// placing is the keys that must go and the places that must be filled, both ascending.
type placing struct {
	surplus []Rated
	vacant  []Key
}

// place decides on the keys of a cell that is to hold low+more.
func (s *spread) place(more int, p *placing) {
	switch s.low + more {
	case 0:
		p.surplus = append(p.surplus, s.keys...)
		return
	case 1: // whichever it is, the halves of the cell are balanced
	default:
		left, right := s.halves(more)
		s.left.place(left, p)
		s.right.place(right, p)
		return
	}
	if len(s.keys) == 0 {
		p.vacant = append(p.vacant, s.cell.middle())
		return
	}
	p.surplus = append(p.surplus, s.keys[1:]...)
}

// search returns where a key is, or would be, among keys that ascend.
func search(keys []Rated, k Key) (int, bool) {
	return slices.BinarySearchFunc(keys, k, func(r Rated, k Key) int { return r.Key.Compare(k) })
}

// byRate orders keys by what they carry, the heaviest first.
func byRate(a, b Rated) int {
	return cmp.Or(cmp.Compare(b.Rate, a.Rate), a.Key.Compare(b.Key))
}
