package keyspace

import (
	"fmt"
	"math/bits"
)

// Nth returns the key that an empty Allocator of this space gives n-th, from 0 on, with nothing
// allocated before it: 64, 32, 96, 16, 80, 48, 112, 8, ... in a space of 128. The keys of any
// first n are spread evenly: the halves of the space differ by one key at most, their halves
// too, and so on. It takes constant time, however large n is. An n that the space does not have
// is an error that wraps ErrFull.
//
// In a space of 2^b keys the n-th key is n+1 with its b bits in reverse, the van der Corput
// sequence in base 2 (J. G. van der Corput, "Verteilungsfunktionen", 1935): the lowest bit of
// n+1 chooses the half, the next one the half of that, up to the highest one, which says that
// the middle is reached. Other spaces have halves of different sizes, so it halves at most 128
// times.
func (s Space) Nth(n Key) (Key, error) {
	if !s.Contains(n) {
		return Key{}, fmt.Errorf("%w: it has %s keys, so there is no key number %s, from 0 on",
			ErrFull, s, n)
	}
	if b, ok := s.bits(); ok {
		return n.Add(Key{Lo: 1}).reverse().shiftRight(uint(128 - b)), nil
	}
	return s.nthByHalving(n), nil
}

// nthByHalving is Nth for any space. The halves take turns, the left one first. They have the
// same room, or one of them has room for one key more: so only the last key of a cell can find
// the left half full when it is its turn.
func (s Space) nthByHalving(n Key) Key {
	c := s.cell()
	middle := c.middle()
	for n != (Key{}) {
		n = n.Sub(Key{Lo: 1}) // the middle came first
		leftsTurn := n.Lo&1 == 0
		n = n.Half()
		if room, _ := c.rooms(middle); leftsTurn && n.Less(room) {
			c = c.left(middle)
		} else {
			c = c.right(middle)
		}
		middle = c.middle()
	}
	return middle
}

// reverse returns the key with its 128 bits in reverse.
func (k Key) reverse() Key {
	return Key{Hi: bits.Reverse64(k.Lo), Lo: bits.Reverse64(k.Hi)}
}

// shiftRight returns k / 2^n, rounded down, for an n of at most 128.
func (k Key) shiftRight(n uint) Key {
	if n >= 64 {
		return Key{Lo: k.Hi >> (n - 64)}
	}
	return Key{Hi: k.Hi >> n, Lo: k.Lo>>n | k.Hi<<(64-n)}
}
