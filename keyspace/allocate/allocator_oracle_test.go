package allocate_test

import (
	"math/big"
	"testing"

	"github.com/runnel-stream/runnel/keyspace"
	"github.com/runnel-stream/runnel/keyspace/allocate"
)

func toBig(k keyspace.Key) *big.Int {
	n := new(big.Int).SetUint64(k.Hi)
	return n.Lsh(n, 64).Or(n, new(big.Int).SetUint64(k.Lo))
}

// held is a key that is taken, for the oracle.
type held struct {
	key  *big.Int
	rate uint64
}

// oracle is the rule of balance in its plainest form: no tree, no caches, everything
// counted again. start and end bound the keys that are still in question: end is beyond them,
// and start too, unless it is 0. firstRate is the rate of the key at start.
type oracle struct {
	byRate bool // false: the numbers of keys alone decide
}

func (o oracle) next(taken []held, start, end *big.Int, firstRate uint64) *big.Int {
	middle := new(big.Int).Add(start, end)
	middle.Rsh(middle, 1)
	var below, above []held
	var own *held
	for i, h := range taken {
		switch h.key.Cmp(middle) {
		case -1:
			below = append(below, h)
		case 1:
			above = append(above, h)
		default:
			own = &taken[i]
		}
	}
	if own == nil {
		return middle
	}
	one := big.NewInt(1)
	free := new(big.Int).Sub(middle, start)
	if start.Sign() != 0 {
		free.Sub(free, one)
	}
	leftIsFull := free.Cmp(big.NewInt(int64(len(below)))) <= 0
	free.Sub(end, middle).Sub(free, one)
	rightIsFull := free.Cmp(big.NewInt(int64(len(above)))) <= 0
	if !rightIsFull && (leftIsFull || !o.lighterLeft(below, above, firstRate, own.rate)) {
		return o.next(above, middle, end, own.rate)
	}
	return o.next(below, start, middle, firstRate)
}

func (o oracle) lighterLeft(below, above []held, firstRate, ownRate uint64) bool {
	for _, h := range below {
		firstRate += h.rate
	}
	for _, h := range above {
		ownRate += h.rate
	}
	if o.byRate && firstRate != ownRate {
		return firstRate < ownRate
	}
	return len(below) <= len(above)
}

// nextOf returns the key that an allocator of the space must allocate next.
func (o oracle) nextOf(s allocate.Space, taken []held) *big.Int {
	end := toBig(s.Last())
	return o.next(taken, new(big.Int), end.Add(end, big.NewInt(1)), 0)
}

// The first 5,000 keys at 128 bits are those of the tree that counts its halves again for each.
func TestFirst5000Keys(t *testing.T) {
	var taken []held
	var a allocate.Allocator
	for n := range 5000 {
		want := oracle{}.nextOf(allocate.Space{}, taken)
		taken = append(taken, held{want, 1})
		got, err := a.Allocate()
		if err != nil || toBig(got).Cmp(want) != 0 {
			t.Fatalf("key number %d is %s, %v; want %s", n, got, err, want)
		}
		if of := nth(t, allocate.Space{}, keyspace.Key{Lo: uint64(n)}); of != got {
			t.Fatalf("Nth(%d) is %s, want %s", n, of, got)
		}
	}
}
