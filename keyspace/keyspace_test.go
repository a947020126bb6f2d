package keyspace_test

import (
	"errors"
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"github.com/runnel-stream/runnel/keyspace"
)

func toBig(k keyspace.Key) *big.Int {
	n := new(big.Int).SetUint64(k.Hi)
	return n.Lsh(n, 64).Or(n, new(big.Int).SetUint64(k.Lo))
}

var space = new(big.Int).Lsh(big.NewInt(1), 128)

func keys() *rapid.Generator[keyspace.Key] {
	word := rapid.OneOf(rapid.Uint64(), rapid.SampledFrom([]uint64{0, 1, ^uint64(0), 1 << 63}))
	return rapid.Custom(func(t *rapid.T) keyspace.Key {
		return keyspace.Key{Hi: word.Draw(t, "hi"), Lo: word.Draw(t, "lo")}
	})
}

// Key arithmetic is checked against math/big.
func TestKeyArithmetic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := keys().Draw(t, "a"), keys().Draw(t, "b")
		if got, want := a.String(), toBig(a).String(); got != want {
			t.Fatalf("String: got %s, want %s", got, want)
		}
		if back, err := keyspace.Parse(a.String()); err != nil || back != a {
			t.Fatalf("Parse(%s) = %v, %v", a, back, err)
		}
		sum := new(big.Int).Add(toBig(a), toBig(b))
		if got := toBig(a.Add(b)); got.Cmp(sum.Mod(sum, space)) != 0 {
			t.Fatalf("Add: got %s", got)
		}
		difference := new(big.Int).Sub(toBig(a), toBig(b))
		if got := toBig(a.Sub(b)); got.Cmp(difference.Mod(difference, space)) != 0 {
			t.Fatalf("Sub: got %s", got)
		}
		if got, want := a.Compare(b), toBig(a).Cmp(toBig(b)); got != want {
			t.Fatalf("Compare: got %d, want %d", got, want)
		}
		if got := toBig(a.Half()); got.Cmp(new(big.Int).Rsh(toBig(a), 1)) != 0 {
			t.Fatalf("Half: got %s", got)
		}
	})
}

func TestParseRefuses(t *testing.T) {
	for _, text := range []string{
		"", "-1", "01", "1.0", " 1", "1e3", "abc",
		"340282366920938463463374607431768211456", // 2^128
		"999999999999999999999999999999999999999", "1000000000000000000000000000000000000000",
	} {
		if k, err := keyspace.Parse(text); !errors.Is(err, keyspace.ErrKeySyntax) {
			t.Errorf("Parse(%q) = %v, %v; want ErrKeySyntax", text, k, err)
		}
	}
	if k, err := keyspace.Parse("340282366920938463463374607431768211455"); err != nil || k != keyspace.Max() {
		t.Errorf("Parse(2^128-1) = %v, %v", k, err)
	}
}

// The digests are those of the MD5 reference (RFC 1321, appendix A.5).
func TestOf(t *testing.T) {
	for text, hex := range map[string]string{
		"":    "d41d8cd98f00b204e9800998ecf8427e",
		"a":   "0cc175b9c0f1b6a831c399e269772661",
		"abc": "900150983cd24fb0d6963f7d28e17f72",
	} {
		want, _ := new(big.Int).SetString(hex, 16)
		if got := toBig(keyspace.Of(text)); got.Cmp(want) != 0 {
			t.Errorf("Of(%q) = %x, want %s", text, got, hex)
		}
	}
}

// Uniform ranges start at i*floor(2^128/n) and tile the key space.
func TestUniform(t *testing.T) {
	for _, n := range []int{1, 2, 3, 4, 5, 7, 16, 100, 255, 256, 1000, 10_000} {
		ranges := keyspace.Uniform(n)
		if err := keyspace.Tiles(ranges); err != nil || len(ranges) != n {
			t.Fatalf("Uniform(%d): %d ranges, %v", n, len(ranges), err)
		}
		width := new(big.Int).Div(space, big.NewInt(int64(n)))
		for i, r := range ranges {
			want := new(big.Int).Mul(width, big.NewInt(int64(i)))
			if toBig(r.Start).Cmp(want) != 0 {
				t.Fatalf("Uniform(%d)[%d] starts at %s, want %s", n, i, r.Start, want)
			}
		}
	}
}

// Any row of splits and merges keeps the tiling, and a broken tiling is named.
func TestSplitAndJoinKeepTiling(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ranges := keyspace.Uniform(rapid.IntRange(1, 9).Draw(t, "n"))
		for range rapid.IntRange(0, 20).Draw(t, "steps") {
			i := rapid.IntRange(0, len(ranges)-1).Draw(t, "i")
			if rapid.Bool().Draw(t, "split") {
				low, high := ranges[i].SplitAt(ranges[i].Middle())
				ranges = append(ranges[:i:i], append([]keyspace.Range{low, high}, ranges[i+1:]...)...)
			} else if i+1 < len(ranges) {
				if !ranges[i+1].Adjacent(ranges[i]) {
					t.Fatalf("%s and %s are not adjacent", ranges[i], ranges[i+1])
				}
				joined := ranges[i+1].Join(ranges[i])
				ranges = append(ranges[:i:i], append([]keyspace.Range{joined}, ranges[i+2:]...)...)
			}
		}
		if err := keyspace.Tiles(ranges); err != nil {
			t.Fatal(err)
		}
		owners := 0
		k := keys().Draw(t, "k")
		for _, r := range ranges {
			if r.Contains(k) {
				owners++
			}
		}
		if owners != 1 {
			t.Fatalf("%s has %d owners", k, owners)
		}
		hole := rapid.IntRange(0, len(ranges)-1).Draw(t, "hole")
		if keyspace.Tiles(append(ranges[:hole:hole], ranges[hole+1:]...)) == nil {
			t.Fatal("a hole was not seen")
		}
		if keyspace.Tiles(append(ranges[:len(ranges):len(ranges)], ranges[hole])) == nil {
			t.Fatal("an overlap was not seen")
		}
	})
}

func FuzzParse(f *testing.F) {
	f.Add("0")
	f.Add("340282366920938463463374607431768211455")
	f.Fuzz(func(t *testing.T, text string) {
		k, err := keyspace.Parse(text)
		n, ok := new(big.Int).SetString(text, 10)
		valid := ok && n.Sign() >= 0 && n.Cmp(space) < 0 && n.String() == text
		if valid != (err == nil) {
			t.Fatalf("Parse(%q): %v, want valid=%v", text, err, valid)
		}
		if err == nil && k.String() != text {
			t.Fatalf("Parse(%q).String() = %s", text, k)
		}
	})
}
