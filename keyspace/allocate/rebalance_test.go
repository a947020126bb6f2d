package allocate_test

import (
	"errors"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/runnel-stream/runnel/keyspace"
	"github.com/runnel-stream/runnel/keyspace/allocate"
)

// balanced reports whether halves differ by one key at most, all the way down. keys are
// ascending, in [lo, last].
func balanced(keys []uint64, lo, last uint64) bool {
	if len(keys) <= 1 || lo == last {
		return true
	}
	middle := lo + (last-lo+1)/2
	at, _ := slices.BinarySearch(keys, middle)
	return max(at, len(keys)-at)-min(at, len(keys)-at) <= 1 &&
		balanced(keys[:at], lo, middle-1) && balanced(keys[at:], middle, last)
}

// fewestByTrial looks at every set of so many keys in a space of up to 16.
func fewestByTrial(taken []uint64, size uint64) int {
	var had uint
	for _, k := range taken {
		had |= 1 << k
	}
	most := 0
	for set := range uint(1) << size {
		if bits.OnesCount(set) != len(taken) || bits.OnesCount(set&had) <= most {
			continue
		}
		var keys []uint64
		for k := range size {
			if set&(1<<k) > 0 {
				keys = append(keys, k)
			}
		}
		if balanced(keys, 0, size-1) {
			most = bits.OnesCount(set & had)
		}
	}
	return len(taken) - most
}

// made makes the moves in their order, and fails if one of them cannot be made.
func made(t interface{ Fatalf(string, ...any) }, space allocate.Space, before []allocate.Rated,
	moves []allocate.Move,
) []allocate.Rated {
	a := allocate.New(space)
	if err := a.AddRated(before...); err != nil {
		t.Fatalf("%v", err)
	}
	rates := map[keyspace.Key]uint64{}
	for _, r := range before {
		rates[r.Key] = r.Rate
	}
	for _, m := range moves {
		rate, there := rates[m.From]
		if !there || rate != m.Rate {
			t.Fatalf("%v: the rate is %d, %v", m, rate, there)
		}
		if err := a.AddRated(allocate.Rated{Key: m.To, Rate: m.Rate}); err != nil {
			t.Fatalf("%v: %v", m, err)
		}
		if err := a.Release(m.From); err != nil {
			t.Fatalf("%v: %v", m, err)
		}
		delete(rates, m.From)
		rates[m.To] = rate
	}
	return state(a)
}

func drawTaken(t *rapid.T, size uint64, rate *rapid.Generator[uint64]) ([]allocate.Rated, []uint64) {
	numbers := rapid.SliceOfDistinct(rapid.Uint64Range(0, size-1),
		func(k uint64) uint64 { return k }).Draw(t, "taken")
	var list []allocate.Rated
	for _, k := range numbers {
		list = append(list, allocate.Rated{Key: keyspace.Key{Lo: k}, Rate: rate.Draw(t, "rate")})
	}
	slices.Sort(numbers)
	return list, numbers
}

// In small spaces of any size the moves restore balance, and no fewer could.
func TestRebalanceIsFewest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.Uint64Range(1, 12).Draw(t, "size")
		space, _ := allocate.NewSpace(keyspace.Key{Lo: size})
		list, numbers := drawTaken(t, size, rapid.Uint64Range(0, 3))
		moves, err := allocate.Rebalance(space, list)
		if err != nil {
			t.Fatal(err)
		}
		var after []uint64
		for _, r := range made(t, space, list, moves) {
			after = append(after, r.Key.Lo)
		}
		if !balanced(after, 0, size-1) {
			t.Fatalf("%v became %v", numbers, after)
		}
		if want := fewestByTrial(numbers, size); len(moves) != want {
			t.Fatalf("%v became %v with %d moves, %d are enough", numbers, after, len(moves), want)
		}
		reversed := slices.Clone(moves)
		slices.Reverse(reversed)
		made(t, space, list, reversed) // in any order
		if !slices.IsSortedFunc(moves, func(a, b allocate.Move) int { return a.From.Compare(b.From) }) ||
			!slices.IsSortedFunc(moves, func(a, b allocate.Move) int { return a.To.Compare(b.To) }) {
			t.Fatalf("not ascending: %v", moves)
		}
	})
}

// In the space of a stream the keys are balanced afterwards, and a second Rebalance has no moves.
// The keys of an allocator need no moves either.
func TestRebalanceWholeSpace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 300).Draw(t, "n")
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		low := rapid.Bool().Draw(t, "low") // all keys in a corner
		var list []allocate.Rated
		for range n {
			k := keyspace.Key{Hi: random.Uint64(), Lo: random.Uint64()}
			if low {
				k.Hi %= 1 << 20
			}
			list = append(list, allocate.Rated{Key: k, Rate: 1})
		}
		var space allocate.Space
		moves, err := allocate.Rebalance(space, list)
		if err != nil {
			t.Fatal(err)
		}
		after := made(t, space, list, moves)
		if again, err := allocate.Rebalance(space, after); err != nil || len(again) > 0 {
			t.Fatalf("%d moves more, %v", len(again), err)
		}
		for depth := range 8 {
			shards := make([]int, 1<<depth)
			for _, r := range after {
				shards[r.Key.Hi>>(64-depth)]++ // of depth 0: all
			}
			if slices.Max(shards)-slices.Min(shards) > 1 {
				t.Fatalf("%d shards have %v", len(shards), shards)
			}
		}
		a := allocate.New(space)
		for range n {
			a.Allocate()
		}
		if moves, err := allocate.Rebalance(space, state(a)); err != nil || len(moves) > 0 {
			t.Fatalf("an allocator's own keys: %v, %v", moves, err)
		}
	})
}

// The keys afterwards are those of an empty allocator, each rate on its own, and no rate moves
// that could stay.
func TestRebalanceScratch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.Uint64Range(1, 40).Draw(t, "size")
		space, _ := allocate.NewSpace(keyspace.Key{Lo: size})
		list, _ := drawTaken(t, size, rapid.Uint64Range(1, 3))
		fresh := allocate.New(space)
		heaviest := slices.Clone(list)
		slices.SortStableFunc(heaviest, func(a, b allocate.Rated) int { return int(b.Rate) - int(a.Rate) })
		for _, r := range heaviest {
			if _, err := fresh.AllocateRated(r.Rate); err != nil {
				t.Fatal(err)
			}
		}
		want := state(fresh)
		moves, err := allocate.RebalanceScratch(space, list)
		if errors.Is(err, allocate.ErrSpaceFull) && len(list) == int(size) {
			return // a ring, and no spare key
		}
		if err != nil {
			t.Fatal(err)
		}
		if after := made(t, space, list, moves); !slices.Equal(after, want) {
			t.Fatalf("%v became %v, want %v", list, after, want)
		}
		moved := map[keyspace.Key]bool{}
		for _, m := range moves {
			moved[m.From] = true
		}
		for _, r := range list {
			if slices.Contains(want, r) && moved[r.Key] {
				t.Fatalf("%v moved and could have stayed: %v", r, moves)
			}
		}
		again, err := allocate.RebalanceScratch(space, want)
		if err != nil || len(again) > 0 {
			t.Fatalf("%v, %v", again, err)
		}
	})
}

// Two keys that change places go over a spare one; without one it is an error.
func TestRebalanceScratchRing(t *testing.T) {
	list := []allocate.Rated{{Key: keyspace.Key{Lo: 64}, Rate: 1}, {Key: keyspace.Key{Lo: 32}, Rate: 9}}
	moves, err := allocate.RebalanceScratch(spaceOf(t, "128"), list)
	if err != nil || len(moves) != 3 || moves[0].To != moves[2].From {
		t.Errorf("%v, %v", moves, err)
	}
	list = nil
	for i, k := range []uint64{32, 64, 96, 16} {
		list = append(list, allocate.Rated{Key: keyspace.Key{Lo: k}, Rate: uint64(9 - i)})
	}
	moves, err = allocate.RebalanceScratch(spaceOf(t, "128"), list)
	if err != nil || len(moves) != 6 || moves[0].To != moves[3].To {
		t.Errorf("two rings over one spare key: %v, %v", moves, err)
	}
	full := []allocate.Rated{{Rate: 9}, {Key: keyspace.Key{Lo: 1}, Rate: 1}}
	if moves, err := allocate.RebalanceScratch(spaceOf(t, "2"), full); !errors.Is(err, allocate.ErrSpaceFull) {
		t.Errorf("%v, %v", moves, err)
	}
}

func loads(list []allocate.Rated, shards []keyspace.Range) []uint64 {
	sums := make([]uint64, len(shards))
	for _, r := range list {
		for i, s := range shards {
			if s.Contains(r.Key) {
				sums[i] += r.Rate
			}
		}
	}
	return sums
}

// RebalanceShards keeps its promises, and ends only when no unmoved key helps.
func TestRebalanceShards(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shards := keyspace.Uniform(rapid.IntRange(1, 9).Draw(t, "shards"))
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		var list []allocate.Rated
		for range rapid.IntRange(0, 60).Draw(t, "keys") {
			list = append(list, allocate.Rated{
				Key:  keyspace.Key{Hi: random.Uint64() >> random.IntN(4), Lo: random.Uint64()},
				Rate: random.Uint64N(100) * random.Uint64N(2),
			})
		}
		tolerance := rapid.Float64Range(0, 0.5).Draw(t, "tolerance")
		var space allocate.Space
		moves, err := allocate.RebalanceShards(space, list, shards, tolerance)
		if err != nil {
			t.Fatal(err)
		}
		after := made(t, space, list, moves)
		sums := loads(after, shards)
		peak, least := slices.Max(sums), slices.Min(sums)
		if peak > slices.Max(loads(list, shards)) {
			t.Fatalf("the peak rose to %d", peak)
		}
		moved := map[keyspace.Key]bool{}
		for _, m := range moves {
			moved[m.To] = true
			for _, s := range shards {
				if s.Contains(m.From) && s.Contains(m.To) {
					t.Fatalf("%v stays in its shard", m)
				}
			}
		}
		if len(moved) != len(moves) {
			t.Fatalf("a key moved twice: %v", moves)
		}
		var mean float64
		for _, sum := range sums {
			mean += float64(sum) / float64(len(sums))
		}
		if float64(peak) <= (1+tolerance)*mean {
			return
		}
		heavy := shards[slices.Index(sums, peak)]
		for _, r := range after {
			if heavy.Contains(r.Key) && !moved[r.Key] && r.Rate > 0 && r.Rate < peak-least {
				t.Fatalf("%v could move: %d to %d", r, peak, least)
			}
		}
	})
}

// TestRebalanceShardsExactly moves keys whose rates allow an equal division: no shard exceeds the
// mean by more than 1, and the moved keys are not all in one half of a shard.
func TestRebalanceShardsExactly(t *testing.T) {
	var list []allocate.Rated
	for i := range 40 {
		list = append(list, allocate.Rated{Key: keyspace.Key{Lo: uint64(i)}, Rate: uint64(1 + i%4)})
	}
	shards := keyspace.Uniform(4)
	moves, err := allocate.RebalanceShards(allocate.Space{}, list, shards, 0)
	if err != nil {
		t.Fatal(err)
	}
	after := made(t, allocate.Space{}, list, moves)
	if got := loads(after, shards); slices.Max(got) > 26 || len(moves) > 30 {
		t.Errorf("%d moves to %v", len(moves), got)
	}
	halves := loads(after, keyspace.Uniform(8))[2:]
	if slices.Max(halves)-slices.Min(halves) > 8 {
		t.Errorf("the new keys are crowded: %v", halves)
	}
}

// A shard may be full; the gap at its end, and at the end of all keys, is one too.
func TestRebalanceShardsGaps(t *testing.T) {
	low, high := keyspace.All().SplitAt(keyspace.Key{Lo: 2})
	heavy := []allocate.Rated{
		{Key: keyspace.Key{Lo: 5}, Rate: 5},
		{Key: keyspace.Key{Lo: 6}, Rate: 5},
		{Key: keyspace.Max(), Rate: 1},
		{Key: keyspace.Key{Lo: 1}},
	}
	layout := []keyspace.Range{high, low}
	moves, err := allocate.RebalanceShards(allocate.Space{}, heavy, layout, 0)
	if err != nil || len(moves) != 1 || moves[0].To != (keyspace.Key{}) {
		t.Errorf("%v, %v", moves, err)
	}
	nearer := []allocate.Rated{{Rate: 7}, {Key: keyspace.Key{Lo: 1}, Rate: 4}, {Key: keyspace.Key{Lo: 2}, Rate: 2}}
	moves, err = allocate.RebalanceShards(allocate.Space{}, nearer, keyspace.Uniform(2), 0)
	if err != nil || len(moves) != 1 || moves[0].Rate != 7 {
		t.Errorf("%v, %v", moves, err)
	}
	full := append(heavy, allocate.Rated{})
	if moves, err := allocate.RebalanceShards(allocate.Space{}, full, layout, 0); !errors.Is(err, allocate.ErrSpaceFull) {
		t.Errorf("%v, %v", moves, err)
	}
	if _, err := allocate.RebalanceShards(allocate.Space{}, heavy, layout[:1], 0); err == nil {
		t.Error("a layout with a gap was taken")
	}
	back := []allocate.Rated{{Rate: 5}, {Key: keyspace.Key{Lo: 1}, Rate: 6}, {Key: keyspace.Max()}}
	moves, err = allocate.RebalanceShards(allocate.Space{}, back, layout, 0)
	if err != nil || len(moves) != 1 || !high.Contains(moves[0].To) {
		t.Errorf("%v, %v", moves, err)
	}
	// A space of 8 has parts of the first two shards alone.
	parts := []keyspace.Range{low, {Start: keyspace.Key{Lo: 2}, End: keyspace.Key{Lo: 5}}, {Start: keyspace.Key{Lo: 6}, End: keyspace.Max()}}
	moves, err = allocate.RebalanceShards(spaceOf(t, "4"), []allocate.Rated{{Rate: 5}, {Key: keyspace.Key{Lo: 1}, Rate: 6}}, parts, 0)
	if err != nil || len(moves) != 1 || moves[0].To != (keyspace.Key{Lo: 3}) {
		t.Errorf("%v, %v", moves, err)
	}
}

func TestRebalanceRefuses(t *testing.T) {
	twice := []allocate.Rated{{Rate: 1}, {Rate: 1}}
	_, fewest := allocate.Rebalance(allocate.Space{}, twice)
	_, fresh := allocate.RebalanceScratch(allocate.Space{}, twice)
	_, shards := allocate.RebalanceShards(allocate.Space{}, twice, keyspace.Uniform(2), 0)
	for _, err := range []error{fewest, fresh, shards} {
		if !errors.Is(err, allocate.ErrKeyTaken) {
			t.Errorf("got %v", err)
		}
	}
	outside := []allocate.Rated{{Rate: 1}, {Key: keyspace.Key{Lo: 128}}}
	if _, err := allocate.Rebalance(spaceOf(t, "128"), outside); !errors.Is(err, allocate.ErrOutsideSpace) ||
		err.Error() != "the key is not in the key space: 128: want 0 to 127" {
		t.Errorf("got %v", err)
	}
}

func BenchmarkRebalance1M(b *testing.B) {
	random := rand.New(rand.NewPCG(1, 2))
	list := make([]allocate.Rated, 1_000_000)
	for i := range list {
		list[i] = allocate.Rated{Key: keyspace.Key{Hi: random.Uint64(), Lo: random.Uint64()}, Rate: 1}
	}
	for b.Loop() {
		if _, err := allocate.Rebalance(allocate.Space{}, list); err != nil {
			b.Fatal(err)
		}
	}
}
