package keyspace_test

import (
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"github.com/runnel-stream/runnel/keyspace"
)

// Spread keeps proportions, to the 64 bits that it looks at, and stays in the range.
func TestSpread(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b, k := keys().Draw(t, "a"), keys().Draw(t, "b"), keys().Draw(t, "k")
		if b.Less(a) {
			a, b = b, a
		}
		r := keyspace.Range{Start: a, End: b}
		got := r.Spread(k)
		want := new(big.Int).Sub(toBig(b), toBig(a))
		want.Mul(want, new(big.Int).SetUint64(k.Hi))
		want.Div(want, new(big.Int).SetUint64(^uint64(0)))
		if want.Add(want, toBig(a)); !r.Contains(got) || toBig(got).Cmp(want) != 0 {
			t.Fatalf("%v in %s is %v, want %s", k, r, got, want)
		}
	})
}

func TestPart(t *testing.T) {
	for _, n := range []int{1, 2, 4, 1024} {
		for _, r := range keyspace.Uniform(n) {
			if got := r.Part(); got != 1/float64(n) {
				t.Errorf("%s is %g of the key space, want 1/%d", r, got, n)
			}
		}
	}
}
