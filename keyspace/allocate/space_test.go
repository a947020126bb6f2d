package allocate_test

import (
	"errors"
	"math/big"
	"testing"

	"github.com/runnel-stream/runnel/keyspace"
	"github.com/runnel-stream/runnel/keyspace/allocate"
)

// spaceOf returns the space of a size that the test knows to be one.
// space is 2^128.
var space = new(big.Int).Lsh(big.NewInt(1), 128)

func spaceOf(t testing.TB, size string) allocate.Space {
	t.Helper()
	space, err := allocate.ParseSpace(size)
	if err != nil {
		t.Fatal(err)
	}
	return space
}

func TestParseSpace(t *testing.T) {
	for text, want := range map[string]struct{ size, last string }{
		"1":     {"1", "0"},
		"2^0":   {"1", "0"},
		"2":     {"2", "1"},
		"2^7":   {"128", "127"},
		"100":   {"100", "99"},
		"2^63":  {"9223372036854775808", "9223372036854775807"},
		"2^64":  {"18446744073709551616", "18446744073709551615"},
		"2^127": {"170141183460469231731687303715884105728", "170141183460469231731687303715884105727"},
		"2^128": {space.String(), keyspace.Max().String()},
		"340282366920938463463374607431768211455": {
			"340282366920938463463374607431768211455", "340282366920938463463374607431768211454",
		},
		"340282366920938463463374607431768211456": {space.String(), keyspace.Max().String()},
	} {
		s, err := allocate.ParseSpace(text)
		if err != nil || s.String() != want.size || s.Last().String() != want.last {
			t.Errorf("ParseSpace(%q) = %s to %s, %v; want %s to %s",
				text, s, s.Last(), err, want.size, want.last)
		}
		if back, err := allocate.ParseSpace(s.String()); err != nil || back != s {
			t.Errorf("ParseSpace(%s) = %s, %v", s, back, err)
		}
		after := s.Last().Add(keyspace.Key{Lo: 1})
		if !s.Contains(s.Last()) || !s.Contains(keyspace.Key{}) ||
			s != (allocate.Space{}) && s.Contains(after) {
			t.Errorf("the space %s does not contain exactly 0 to %s", s, s.Last())
		}
	}
	if s, _ := allocate.ParseSpace("2^128"); s != (allocate.Space{}) {
		t.Error("the zero Space is not that of 2^128 keys")
	}
}

func TestParseSpaceRefuses(t *testing.T) {
	for _, text := range []string{
		"", "0", "-1", "007", "2^", "2^129", "2^-1", "2^07", "2^+7", "2^256", "3^2", "128 ", "1e3",
		"340282366920938463463374607431768211457",
	} {
		if s, err := allocate.ParseSpace(text); !errors.Is(err, allocate.ErrSpaceSize) {
			t.Errorf("ParseSpace(%q) = %s, %v; want ErrSpaceSize", text, s, err)
		}
	}
	if s, err := allocate.NewSpace(keyspace.Key{}); !errors.Is(err, allocate.ErrSpaceSize) {
		t.Errorf("NewSpace(0) = %s, %v; want ErrSpaceSize", s, err)
	}
	if s, err := allocate.NewSpace(keyspace.Key{Lo: 128}); err != nil || s.String() != "128" {
		t.Errorf("NewSpace(128) = %s, %v", s, err)
	}
}

// ParseSpace accepts sizes from 1 to 2^128 only, and String returns the size.
func FuzzParseSpace(f *testing.F) {
	for _, text := range []string{"1", "128", "2^7", "2^128", "2^129", "0", space.String()} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := allocate.ParseSpace(text)
		if err != nil {
			if n, ok := new(big.Int).SetString(text, 10); ok && n.String() == text &&
				n.Sign() > 0 && n.Cmp(space) <= 0 {
				t.Fatalf("ParseSpace(%q): %v", text, err)
			}
			return
		}
		size, ok := new(big.Int).SetString(s.String(), 10)
		if !ok || size.Sign() <= 0 || size.Cmp(space) > 0 {
			t.Fatalf("ParseSpace(%q) has the size %s", text, s)
		}
		if last := toBig(s.Last()); size.Cmp(last.Add(last, big.NewInt(1))) != 0 {
			t.Fatalf("the space %s ends at %s", s, s.Last())
		}
	})
}

// Any space is cut into equal parts, which tile all hash keys.
func TestSpaceUniform(t *testing.T) {
	for _, size := range []string{"1", "2", "7", "128", "2^64", "2^127", "2^128"} {
		space := spaceOf(t, size)
		for _, n := range []int{0, 1, 2, 3, 7, 8, 128, 129} {
			parts := space.Uniform(n)
			fits := n > 0 && (n == 1 || !space.Last().Less(keyspace.Key{Lo: uint64(n - 1)}))
			switch {
			case !fits:
				if parts != nil {
					t.Errorf("%s keys in %d parts: %v", size, n, parts)
				}
				continue
			case len(parts) != n || keyspace.Tiles(parts) != nil:
				t.Errorf("%s keys in %d parts: %v, %v", size, n, parts, keyspace.Tiles(parts))
				continue
			}
			for i, p := range parts {
				if !space.Contains(p.Start) {
					t.Errorf("%s keys in %d parts: part %d begins behind the space: %v", size, n, i, p)
				}
				if i > 0 && i < n-1 && p.End.Sub(p.Start) != parts[0].End.Sub(parts[0].Start) {
					t.Errorf("%s keys in %d parts: part %d has another width: %v", size, n, i, p)
				}
			}
		}
	}
}
