package allocate

import (
	"fmt"
	"math/bits"

	"github.com/runnel-stream/runnel/keyspace"
)

// Nth returns the n-th key, from 0 on, that an empty Allocator of this space allocates: 64, 32, 96,
// 16, 80, 48, 112, 8, ... in a space of 128. For any n the first n keys are spread evenly: the two
// halves of the space differ by at most one key, and so do the halves of each half, down to single
// keys. It takes constant time, however large n is. If n is not below the size, the error wraps
// ErrSpaceFull.
//
// In a space of 2^b keys, the n-th key is n+1 with its b bits in reverse order: the van der Corput
// sequence in base 2 (J. G. van der Corput, "Verteilungsfunktionen", 1935). The lowest bit of n+1
// chooses the half, the next bit the half of that half. The highest set bit chooses the middle. In
// other spaces the halves differ in size, so Nth halves the space up to 128 times.
func (s Space) Nth(n keyspace.Key) (keyspace.Key, error) {
	if !s.Contains(n) {
		return keyspace.Key{}, fmt.Errorf("%w: it has %s keys, so there is no key number %s, "+
			"from 0 on", ErrSpaceFull, s, n)
	}
	if b, ok := s.bits(); ok {
		return shiftRight(reverse(n.Add(keyspace.Key{Lo: 1})), uint(128-b)), nil
	}
	return s.nthByHalving(n), nil
}

// nthByHalving is Nth for any space. The halves take turns, the left one first. Their rooms differ
// by at most one key, so only the last key of a cell can find the left half full at its turn.
func (s Space) nthByHalving(n keyspace.Key) keyspace.Key {
	c := s.cell()
	middle := c.middle()
	for n != (keyspace.Key{}) {
		n = n.Sub(keyspace.Key{Lo: 1}) // the middle came first
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

// reverse returns k with its 128 bits in reverse order.
func reverse(k keyspace.Key) keyspace.Key {
	return keyspace.Key{Hi: bits.Reverse64(k.Lo), Lo: bits.Reverse64(k.Hi)}
}

// shiftRight returns k / 2^n, rounded down, for n up to 128.
func shiftRight(k keyspace.Key, n uint) keyspace.Key {
	if n >= 64 {
		return keyspace.Key{Lo: k.Hi >> (n - 64)}
	}
	return keyspace.Key{Hi: k.Hi >> n, Lo: k.Lo>>n | k.Hi<<(64-n)}
}
