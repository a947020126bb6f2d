package allocate_test

import (
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/runnel-stream/runnel/keyspace"
	"github.com/runnel-stream/runnel/keyspace/allocate"
)

func keys() *rapid.Generator[keyspace.Key] {
	word := rapid.OneOf(rapid.Uint64(), rapid.SampledFrom([]uint64{0, 1, ^uint64(0), 1 << 63}))
	return rapid.Custom(func(t *rapid.T) keyspace.Key {
		return keyspace.Key{Hi: word.Draw(t, "hi"), Lo: word.Draw(t, "lo")}
	})
}

func keysOf(numbers ...uint64) (list []keyspace.Key) {
	for _, n := range numbers {
		list = append(list, keyspace.Key{Lo: n})
	}
	return list
}

// state returns the keys of an allocator.
func state(a *allocate.Allocator) []allocate.Rated { return slices.Collect(a.All()) }

// After 0, 32, 9 and 57 the right half is filled first, until both halves have the same.
func TestRestoresBalance(t *testing.T) {
	a := allocate.New(spaceOf(t, "128"))
	if err := a.Add(keysOf(0, 32, 9, 57)...); err != nil {
		t.Fatal(err)
	}
	for _, want := range keysOf(64, 96, 80, 112, 72, 48, 104, 16) {
		if got, err := a.Allocate(); err != nil || got != want {
			t.Fatalf("Allocate: %s, %v; want %s", got, err, want)
		}
	}
	if a.Len() != 12 || a.Rate() != 12 || a.Space() != spaceOf(t, "128") {
		t.Errorf("%d keys with a rate of %d, of %s", a.Len(), a.Rate(), a.Space())
	}
}

// A key that cannot be added is named, and nothing of the call is done.
func TestAddIsAllOrNothing(t *testing.T) {
	for _, c := range []struct {
		name string
		keys []allocate.Rated
		want error
		says string
	}{
		{
			"outside",
			[]allocate.Rated{{keyspace.Key{Lo: 1}, 1}, {keyspace.Key{Lo: 128}, 1}},
			allocate.ErrOutsideSpace, "the key is not in the key space: 128: want 0 to 127",
		},
		{
			"taken",
			[]allocate.Rated{{keyspace.Key{Lo: 1}, 1}, {keyspace.Key{Lo: 32}, 1}},
			allocate.ErrKeyTaken, "the key is taken already: 32",
		},
		{
			"twice",
			[]allocate.Rated{{keyspace.Key{Lo: 1}, 1}, {keyspace.Key{Lo: 1}, 1}},
			allocate.ErrKeyTaken, "the key is taken already: 1",
		},
		{
			"too much",
			[]allocate.Rated{{keyspace.Key{Lo: 1}, 1 << 63}, {keyspace.Key{Lo: 2}, 1 << 63}},
			allocate.ErrRateOverflow, "the rates together are 2^64 or more: use a larger unit: " +
				"2 with a rate of 9223372036854775808",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := allocate.New(spaceOf(t, "128"))
			if err := a.AddRated(allocate.Rated{Key: keyspace.Key{Lo: 32}, Rate: 7}); err != nil {
				t.Fatal(err)
			}
			before := state(a)
			check := func(err error, says string) {
				t.Helper()
				if !errors.Is(err, c.want) || err.Error() != says {
					t.Errorf("%v; want %s", err, says)
				}
				if after := state(a); !slices.Equal(before, after) || a.Rate() != 7 || a.Len() != 1 {
					t.Errorf("the allocator has changed from %v to %v", before, after)
				}
			}
			check(a.AddRated(c.keys...), c.says)
			if c.want != allocate.ErrRateOverflow {
				check(a.Add(c.keys[0].Key, c.keys[1].Key), c.says)
			}
		})
	}
}

func TestAllocatorErrors(t *testing.T) {
	a := allocate.New(spaceOf(t, "3"))
	if err := a.Release(keyspace.Key{Lo: 1}); !errors.Is(err, allocate.ErrKeyNotTaken) ||
		err.Error() != "the key is not taken: 1" {
		t.Errorf("Release of a free key: %v", err)
	}
	if err := a.AddRated(allocate.Rated{Key: keyspace.Key{Lo: 2}, Rate: 1 << 63}); err != nil {
		t.Fatal(err)
	}
	if key, err := a.AllocateRated(1 << 63); !errors.Is(err, allocate.ErrRateOverflow) || a.Len() != 1 {
		t.Errorf("rates of 2^64: %s, %v", key, err)
	}
	for _, want := range keysOf(1, 0) {
		if key, err := a.Allocate(); err != nil || key != want {
			t.Errorf("Allocate: %s, %v; want %s", key, err, want)
		}
	}
	if key, err := a.Allocate(); !errors.Is(err, allocate.ErrSpaceFull) ||
		err.Error() != "the key space is full: all its 3 keys are taken" {
		t.Errorf("the fourth of 3 keys: %s, %v", key, err)
	}
	if err := a.Release(keyspace.Key{Lo: 2}); err != nil {
		t.Error(err)
	}
	if key, err := a.Allocate(); err != nil || key != (keyspace.Key{Lo: 2}) || a.Rate() != 3 {
		t.Errorf("after Release(2): %s, %v, a rate of %d", key, err, a.Rate())
	}
}

// Any row of calls, in any space, is as the oracle says: by numbers alone while all rates are 1,
// and by rates otherwise.
func TestAnyRowOfCalls(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, err := allocate.NewSpace(rapid.OneOf(
			rapid.Map(rapid.Uint64Range(1, 40), func(n uint64) keyspace.Key { return keyspace.Key{Lo: n} }),
			rapid.Just(keyspace.Key{Lo: 128}), keys(),
		).Draw(t, "size"))
		if err != nil {
			s = allocate.Space{}
		}
		o := oracle{byRate: rapid.Bool().Draw(t, "by rate")}
		rates := rapid.Just(uint64(1))
		if o.byRate {
			rates = rapid.Uint64Range(0, 9)
		}
		a := allocate.New(s)
		var taken []held
		t.Repeat(map[string]func(*rapid.T){
			"allocate": func(t *rapid.T) {
				rate := rates.Draw(t, "rate")
				key, err := a.AllocateRated(rate)
				if full := len(taken) > 0 && uint64(len(taken)-1) == s.Last().Lo && s.Last().Hi == 0; full {
					if !errors.Is(err, allocate.ErrSpaceFull) {
						t.Fatalf("full: %s, %v", key, err)
					}
					return
				}
				want := o.nextOf(s, taken)
				if err != nil || toBig(key).Cmp(want) != 0 {
					t.Fatalf("Allocate: %s, %v; want %s", key, err, want)
				}
				taken = append(taken, held{want, rate})
			},
			"add": func(t *rapid.T) {
				key := keys().Draw(t, "key")
				if rapid.Bool().Draw(t, "near") {
					key = keyspace.Key{Lo: key.Lo % 64}
				}
				rate := rates.Draw(t, "rate")
				free := !slices.ContainsFunc(taken, func(h held) bool { return h.key.Cmp(toBig(key)) == 0 })
				err := a.AddRated(allocate.Rated{Key: key, Rate: rate})
				switch {
				case !s.Contains(key) && errors.Is(err, allocate.ErrOutsideSpace):
				case s.Contains(key) && !free && errors.Is(err, allocate.ErrKeyTaken):
				case s.Contains(key) && free && err == nil:
					taken = append(taken, held{toBig(key), rate})
				default:
					t.Fatalf("Add(%s), free is %v: %v", key, free, err)
				}
			},
			"release": func(t *rapid.T) {
				if len(taken) == 0 {
					t.Skip("nothing to release")
				}
				i := rapid.IntRange(0, len(taken)-1).Draw(t, "i")
				key, err := keyspace.Parse(taken[i].key.String())
				if err == nil {
					err = a.Release(key)
				}
				if err != nil || a.Has(key) {
					t.Fatalf("Release(%s): %v; taken is %v", key, err, a.Has(key))
				}
				taken = slices.Delete(taken, i, i+1)
			},
			"": func(t *rapid.T) {
				slices.SortFunc(taken, func(a, b held) int { return a.key.Cmp(b.key) })
				total := uint64(0)
				for i, r := range state(a) {
					if i >= len(taken) || toBig(r.Key).Cmp(taken[i].key) != 0 || r.Rate != taken[i].rate {
						t.Fatalf("All: number %d of %d is %s with %d", i, len(taken), r.Key, r.Rate)
					}
					total += r.Rate
				}
				if a.Len() != len(taken) || a.Rate() != total {
					t.Fatalf("Len %d, Rate %d; want %d, %d", a.Len(), a.Rate(), len(taken), total)
				}
			},
		})
	})
}

// Whatever keys are released of an allocator that was filled, the same ones come back.
func TestReleasedKeysComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := allocate.New(allocate.Space{})
		var taken []keyspace.Key
		for range rapid.IntRange(1, 500).Draw(t, "keys") {
			key, err := a.Allocate()
			if err != nil {
				t.Fatal(err)
			}
			taken = append(taken, key)
		}
		want := state(a)
		released := rapid.Permutation(taken).Draw(t, "order")
		released = released[:rapid.IntRange(0, len(taken)).Draw(t, "released")]
		for _, key := range released {
			if err := a.Release(key); err != nil {
				t.Fatal(err)
			}
		}
		for range released {
			if _, err := a.Allocate(); err != nil {
				t.Fatal(err)
			}
		}
		if got := state(a); !slices.Equal(got, want) {
			t.Fatalf("after %v were released: %v; want %v", released, got, want)
		}
	})
}

// While keys with rates are allocated, any two halves, seen as shards, differ by the largest
// rate at most.
func TestHalvesDifferByOneRate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rates := rapid.SliceOfN(rapid.Uint64Range(0, 1000), 1, 300).Draw(t, "rates")
		var a allocate.Allocator
		for _, rate := range rates {
			if _, err := a.AllocateRated(rate); err != nil {
				t.Fatal(err)
			}
		}
		largest := slices.Max(rates)
		for shards := 2; shards <= 512; shards *= 2 {
			loads := loadsOf(keyspace.Uniform(shards), state(&a))
			for i := 0; i < shards; i += 2 {
				if max(loads[i], loads[i+1])-min(loads[i], loads[i+1]) > largest {
					t.Fatalf("of %d shards, %d and %d carry %d and %d; the largest rate is %d",
						shards, i, i+1, loads[i], loads[i+1], largest)
				}
			}
		}
	})
}

// loadsOf returns the sum of the keys' rates in each range. Ranges and keys ascend.
func loadsOf(ranges []keyspace.Range, keys []allocate.Rated) []uint64 {
	loads, at := make([]uint64, len(ranges)), 0
	for _, r := range keys {
		for !ranges[at].Contains(r.Key) {
			at++
		}
		loads[at] += r.Rate
	}
	return loads
}

// From any keys on, allocating restores the balance: the halves that began apart come together.
func TestBalanceComesBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var a allocate.Allocator
		for _, key := range rapid.SliceOfNDistinct(keys(), 0, 60, rapid.ID).Draw(t, "keys") {
			if err := a.Add(key); err != nil {
				t.Fatal(err)
			}
		}
		for range 8 * a.Len() { // enough for four shards when all were in one of them
			if _, err := a.Allocate(); err != nil {
				t.Fatal(err)
			}
		}
		loads := loadsOf(keyspace.Uniform(4), state(&a))
		if slices.Max(loads)-slices.Min(loads) > 2 {
			t.Fatalf("four shards carry %d", loads)
		}
	})
}
