package allocate

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/runnel-stream/runnel/keyspace"
)

// RebalanceShards returns moves that lower the load of the heaviest shard, for keys with rates.
// Each move takes a key from the heaviest to the lightest shard: the one with the rate closest to
// half the difference of the two. It ends when the heaviest shard is at most (1+tolerance) times
// the mean, or when no key that has not moved yet helps. A tolerance of 0.1 is 10 %.
//
// No shard gets more load than the heaviest had before, each key moves at most once, and no move
// stays within a shard. The moves are few, because heavy keys move first, but not always the
// fewest: that problem is bin packing. Each To is the middle of the widest gap in its shard, and
// free from the beginning.
//
// shards must tile the key space, in any order. The errors are those of Allocator.AddRated and
// keyspace.Tiles; they wrap ErrSpaceFull if a shard has no free key.
func RebalanceShards(
	space Space, assigned []Rated, shards []keyspace.Range, tolerance float64,
) ([]Move, error) {
	if err := New(space).AddRated(assigned...); err != nil {
		return nil, err
	}
	if err := keyspace.Tiles(shards); err != nil {
		return nil, fmt.Errorf("the layout of the shards: %w", err)
	}
	l := newLevelling(space, keyspace.Sorted(shards), assigned)
	var moves []Move
	for {
		heavy, light := l.extremes()
		if float64(heavy.load) <= (1+tolerance)*l.mean {
			return moves, nil
		}
		at := heavy.nearest((heavy.load - light.load) / 2)
		if at < 0 || heavy.keys[at].Rate >= heavy.load-light.load {
			return moves, nil
		}
		to, err := light.gap()
		if err != nil {
			return nil, err
		}
		moves = append(moves, Move{From: heavy.keys[at].Key, To: to, Rate: heavy.keys[at].Rate})
		heavy.give(at, light, to)
	}
}

// levelling is the shards that overlap the space, with their loads.
type levelling struct {
	shards []*levelled
	mean   float64
}

type levelled struct {
	cell  cell // the space's part of the shard
	load  uint64
	keys  []Rated        // that may move, by byRate
	taken []keyspace.Key // before any move or after some, ascending
}

func newLevelling(space Space, shards []keyspace.Range, assigned []Rated) *levelling {
	l := &levelling{}
	for _, r := range shards {
		if space.Contains(r.Start) {
			last := space.Last()
			if r.End.Less(last) {
				last = r.End
			}
			l.shards = append(l.shards, &levelled{cell: cell{lo: r.Start, last: last}})
		}
	}
	for _, r := range assigned {
		s := l.shards[keyspace.Locate(shards, r.Key)]
		s.load += r.Rate
		s.keys, s.taken = append(s.keys, r), append(s.taken, r.Key)
		l.mean += float64(r.Rate) / float64(len(l.shards))
	}
	for _, s := range l.shards {
		slices.SortFunc(s.keys, byRate)
		slices.SortFunc(s.taken, keyspace.Key.Compare)
	}
	return l
}

// extremes returns the heaviest and the lightest shard, each the first of equals.
func (l *levelling) extremes() (heavy, light *levelled) {
	heavy, light = l.shards[0], l.shards[0]
	for _, s := range l.shards[1:] {
		if s.load > heavy.load {
			heavy = s
		}
		if s.load < light.load {
			light = s
		}
	}
	return heavy, light
}

// nearest returns the index of the key with the rate nearest to the given one, the smaller of two,
// or -1 if no key with a rate is left.
func (s *levelled) nearest(rate uint64) int {
	at, _ := slices.BinarySearchFunc(s.keys, rate, func(r Rated, rate uint64) int {
		return cmp.Compare(rate, r.Rate)
	})
	if at == len(s.keys) || s.keys[at].Rate == 0 ||
		at > 0 && s.keys[at-1].Rate-rate < rate-s.keys[at].Rate {
		at--
	}
	return at
}

// give moves a key to another shard for good.
func (s *levelled) give(at int, other *levelled, to keyspace.Key) {
	rate := s.keys[at].Rate
	s.keys = slices.Delete(s.keys, at, at+1)
	s.load -= rate
	other.load += rate
	place, _ := slices.BinarySearchFunc(other.taken, to, keyspace.Key.Compare)
	other.taken = slices.Insert(other.taken, place, to)
}

// gap returns the middle of the widest gap between taken keys.
func (s *levelled) gap() (keyspace.Key, error) {
	one := keyspace.Key{Lo: 1}
	var best cell
	found := false
	consider := func(free cell) {
		if !found || best.last.Sub(best.lo).Less(free.last.Sub(free.lo)) {
			best, found = free, true
		}
	}
	from := s.cell.lo
	for _, k := range s.taken {
		if from.Less(k) {
			consider(cell{lo: from, last: k.Sub(one)})
		}
		from = k.Add(one) // 0 after Max, which is then the last of taken too
	}
	if n := len(s.taken); n == 0 || s.taken[n-1] != s.cell.last {
		consider(cell{lo: from, last: s.cell.last})
	}
	if !found {
		return keyspace.Key{}, fmt.Errorf("%w: a shard's keys, %s to %s, are all taken",
			ErrSpaceFull, s.cell.lo, s.cell.last)
	}
	return best.middle(), nil
}
