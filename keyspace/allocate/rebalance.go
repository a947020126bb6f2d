package allocate

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/runnel-stream/runnel/keyspace"
)

// Move moves the owner of the key From to the key To.
type Move struct {
	From, To keyspace.Key // the present key, and the new one
	Rate     uint64       // of the key
}

// Rebalance returns the fewest moves that balance the numbers of keys: afterwards the two halves of
// the space differ by at most one key, and so do the halves of each half (see Allocator). No
// shorter list of moves achieves this. It ignores rates; see RebalanceScratch and RebalanceShards
// for those.
//
// Every To is free from the beginning, so the moves can be made in any order. Both the From and the
// To keys ascend, so keys move no further than necessary.
//
// The errors wrap ErrOutsideSpace or ErrKeyTaken and name the key. It takes about a microsecond for
// each key.
func Rebalance(space Space, assigned []Rated) ([]Move, error) {
	keys := slices.SortedFunc(slices.Values(assigned), func(a, b Rated) int {
		return a.Key.Compare(b.Key)
	})
	for i, r := range keys {
		switch {
		case !space.Contains(r.Key):
			return nil, fmt.Errorf("%w: %s: want 0 to %s", ErrOutsideSpace, r.Key, space.Last())
		case i > 0 && keys[i-1].Key == r.Key:
			return nil, fmt.Errorf("%w: %s", ErrKeyTaken, r.Key)
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

// spread is a cell with its keys, and the number of keys that can stay.
//
// If n keys are balanced, each of the 2^d cells at depth d holds n/2^d keys, rounded down or up. So
// a cell holds one of two numbers, low or low+1, and the best choice for both follows from the best
// choices of its halves.
type spread struct {
	cell        cell
	keys        []Rated // ascending
	low         int
	left, right *spread // nil in a cell that is not divided
	kept        [2]int  // the most keys that can stay if the cell holds low, or low+1
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

// halves returns the number for each half (0: its low, 1: its low+1) if the cell holds low+more
// keys. Between equally good choices, the right half gets more: in the order of Nth the middle is
// the first key of the right half.
//
// So no half gets more keys than it has room for. The left half has room for at most one key less
// than the right one. If the left half gets full, all its keys stay, and one key more would not
// keep more of them.
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

// placing collects the keys that must leave and the places to fill, both ascending.
type placing struct {
	surplus []Rated
	vacant  []keyspace.Key
}

// place decides for the keys of a cell that holds low+more keys.
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

// search returns the index of a key in ascending keys, or the index to insert it at.
func search(keys []Rated, k keyspace.Key) (int, bool) {
	return slices.BinarySearchFunc(keys, k, func(r Rated, k keyspace.Key) int {
		return r.Key.Compare(k)
	})
}

// byRate orders keys by rate, the highest first, then by key.
func byRate(a, b Rated) int {
	return cmp.Or(cmp.Compare(b.Rate, a.Rate), a.Key.Compare(b.Key))
}
