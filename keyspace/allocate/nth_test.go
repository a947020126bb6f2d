package allocate_test

import (
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/runnel-stream/runnel/keyspace"
	"github.com/runnel-stream/runnel/keyspace/allocate"
)

// nth returns the n-th key of a space that the test knows to have one.
func nth(t testing.TB, s allocate.Space, n keyspace.Key) keyspace.Key {
	t.Helper()
	key, err := s.Nth(n)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// The first keys of a space of 128 are those of the balanced tree, level by level, and the key
// 0 is the last one.
func TestNthOf128(t *testing.T) {
	s := spaceOf(t, "128")
	for n, want := range []uint64{64, 32, 96, 16, 80, 48, 112, 8, 72, 40, 104, 24, 88, 56, 120, 4} {
		if got := nth(t, s, keyspace.Key{Lo: uint64(n)}); got != (keyspace.Key{Lo: want}) {
			t.Errorf("key number %d is %s, want %d", n, got, want)
		}
	}
	if got := nth(t, s, keyspace.Key{Lo: 127}); got != (keyspace.Key{}) {
		t.Errorf("the last key is %s, want 0", got)
	}
	if got, err := s.Nth(keyspace.Key{Lo: 128}); !errors.Is(err, allocate.ErrSpaceFull) {
		t.Errorf("key number 128 is %s, %v; want ErrSpaceFull", got, err)
	}
}

// At 128 bits the sequence is the same, with the far ends that no counting reaches.
func TestNthOfAll(t *testing.T) {
	for n, want := range map[keyspace.Key]string{
		{}:                                   "170141183460469231731687303715884105728", // 2^127
		{Lo: 1}:                              "85070591730234615865843651857942052864",  // 2^126
		{Lo: 2}:                              "255211775190703847597530955573826158592", // 3 * 2^126
		{Lo: ^uint64(0)}:                     "9223372036854775808",                     // 2^64 reversed: 2^63
		{Hi: 1 << 63}:                        "170141183460469231731687303715884105729", // 2^127 + 1
		{Hi: ^uint64(0), Lo: ^uint64(0) - 1}: keyspace.Max().String(),                   // all bits, reversed
		keyspace.Max():                       "0",
	} {
		if got := nth(t, allocate.Space{}, n).String(); got != want {
			t.Errorf("key number %s is %s, want %s", n, got, want)
		}
	}
}

// In every space of up to 300 keys, Nth gives each key once, in the order of an allocator that
// was empty, and no more.
func TestNthIsTheAllocatorsOrder(t *testing.T) {
	for size := range uint64(300) {
		s, _ := allocate.NewSpace(keyspace.Key{Lo: size + 1})
		a := allocate.New(s)
		seen := map[keyspace.Key]bool{}
		for n := range size + 1 {
			want, err := a.Allocate()
			got := nth(t, s, keyspace.Key{Lo: n})
			if err != nil || got != want || seen[got] || !s.Contains(got) {
				t.Fatalf("space of %s: key number %d is %s; the allocator: %s, %v",
					s, n, got, want, err)
			}
			seen[got] = true
		}
		if _, err := s.Nth(keyspace.Key{Lo: size + 1}); !errors.Is(err, allocate.ErrSpaceFull) {
			t.Fatalf("space of %s: key number %d: %v; want ErrSpaceFull", s, size+1, err)
		}
		if key, err := a.Allocate(); !errors.Is(err, allocate.ErrSpaceFull) || a.Len() != int(size+1) {
			t.Fatalf("space of %s, full: %s, %v; want ErrSpaceFull", s, key, err)
		}
	}
}

// Of the first n keys of any space, every two halves have the same number or one more.
func TestNthIsBalanced(t *testing.T) {
	for size := uint64(1); size <= 130; size++ {
		s, _ := allocate.NewSpace(keyspace.Key{Lo: size})
		taken := make([]bool, size)
		for n := range size {
			taken[nth(t, s, keyspace.Key{Lo: n}).Lo] = true
			checkHalves(t, taken, n)
		}
	}
}

// checkHalves checks the halves of a row of keys, and their halves, and returns how many of its
// keys are taken.
func checkHalves(t *testing.T, taken []bool, n uint64) int {
	if len(taken) < 2 {
		if len(taken) == 1 && taken[0] {
			return 1
		}
		return 0
	}
	middle := len(taken) / 2
	left, right := checkHalves(t, taken[:middle], n), checkHalves(t, taken[middle:], n)
	if left-right > 1 || right-left > 1 {
		t.Fatalf("after key number %d, halves of %d keys have %d and %d", n, len(taken), left, right)
	}
	return left + right
}

// The order is the allocator's in large spaces of any size too, as far as one counts.
func TestNthInAnySpace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, err := allocate.NewSpace(keys().Draw(t, "size"))
		if err != nil {
			t.Skip(err)
		}
		a := allocate.New(s)
		for n := range uint64(200) {
			want, err := a.Allocate()
			if errors.Is(err, allocate.ErrSpaceFull) {
				return
			}
			got, nthErr := s.Nth(keyspace.Key{Lo: n})
			if err != nil || nthErr != nil || got != want {
				t.Fatalf("space of %s: key number %d is %s, %v; the allocator: %s, %v",
					s, n, got, nthErr, want, err)
			}
		}
	})
}

// Near the end of a space of any size all keys differ too.
func TestNthNearTheEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, err := allocate.NewSpace(keys().Draw(t, "size"))
		if err != nil {
			t.Skip(err)
		}
		seen := map[keyspace.Key]bool{}
		n := s.Last()
		for range 200 {
			key, err := s.Nth(n)
			if err != nil || seen[key] || !s.Contains(key) {
				t.Fatalf("space of %s: key number %s is %s, %v", s, n, key, err)
			}
			seen[key] = true
			if n == (keyspace.Key{}) {
				return
			}
			n = n.Sub(keyspace.Key{Lo: 1})
		}
	})
}

func BenchmarkNth(b *testing.B) {
	for _, size := range []string{"2^128", "340282366920938463463374607431768211455"} {
		b.Run(size, func(b *testing.B) {
			s := spaceOf(b, size)
			for i := range b.N {
				if _, err := s.Nth(keyspace.Key{Hi: uint64(i) << 40, Lo: uint64(i)}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
