package keyspace_test

import (
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"github.com/runnel-stream/runnel/keyspace"
)

// Spread keeps proportions, to the high 64 bits of a key, and stays in the range.
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

// Locate agrees with Contains, and Sorted copies.
func TestLocate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		layout := rapid.Permutation(keyspace.Uniform(rapid.IntRange(1, 20).Draw(t, "n"))).Draw(t, "order")
		first := layout[0]
		sorted := keyspace.Sorted(layout)
		if layout[0] != first || keyspace.Tiles(sorted) != nil || sorted[0].Start != (keyspace.Key{}) {
			t.Fatalf("%v sorted is %v", layout, sorted)
		}
		k := rapid.OneOf(keys(), rapid.Map(rapid.SampledFrom(layout),
			func(r keyspace.Range) keyspace.Key { return r.Start })).Draw(t, "key")
		if at := keyspace.Locate(sorted, k); !sorted[at].Contains(k) {
			t.Fatalf("%s is not in %s", k, sorted[at])
		}
	})
}

func TestRangeOfOneKey(t *testing.T) {
	k := keyspace.Key{Lo: 7}
	one := keyspace.Range{Start: k, End: k}
	if one.Middle() != k || !one.Contains(k) || one.Adjacent(one) || one.String() != "[7, 7]" {
		t.Errorf("%s: the middle is %s", one, one.Middle())
	}
	back := keyspace.Range{Start: k, End: keyspace.Key{}}
	if err := keyspace.Tiles([]keyspace.Range{back}); err == nil {
		t.Error("a range that ends before its start was taken")
	}
}

func TestDivAndFraction(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k, n := keys().Draw(t, "k"), rapid.Uint64Range(1, 1<<63).Draw(t, "n")
		want := new(big.Int).Div(toBig(k), new(big.Int).SetUint64(n))
		if got := k.Div(n); toBig(got).Cmp(want) != 0 {
			t.Fatalf("%s / %d = %s, want %s", k, n, got, want)
		}
		exact, _ := new(big.Rat).SetFrac(toBig(k), space).Float64()
		if got := k.Fraction(); got < exact*(1-1e-12) || got > exact*(1+1e-12) {
			t.Fatalf("%s is %g of 2^128, want %g", k, got, exact)
		}
	})
}
