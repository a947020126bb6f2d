package keyspace

import "slices"

// RebalanceScratch returns the moves to the keys that an empty Allocator gives, the heaviest first:
// with equal rates, to the first ones of Space.Nth. What has a rate stays where it is if some key
// of its rate is to be there, so no list of moves to these keys is shorter.
//
// The moves are to be made in their order: each To is free when its turn comes. Where keys change
// places in a ring, one of them moves twice, over a spare key, which the space must have.
//
// The errors are those of Allocator.AddRated, and ErrFull.
func RebalanceScratch(space Space, assigned []Rated) ([]Move, error) {
	if err := NewAllocator(space).AddRated(assigned...); err != nil {
		return nil, err
	}
	fresh := NewAllocator(space)
	var moves []Move
	for rest := slices.SortedFunc(slices.Values(assigned), byRate); len(rest) > 0; {
		rate, n := rest[0].Rate, 0
		for n < len(rest) && rest[n].Rate == rate {
			n++
		}
		targets := make([]Key, n)
		for i := range targets {
			var err error
			if targets[i], err = fresh.AllocateRated(rate); err != nil {
				return nil, err
			}
		}
		moves = append(moves, matched(rest[:n], targets)...)
		rest = rest[n:]
	}
	return inTurn(fresh, moves)
}

// matched returns the moves of keys, ascending, to as many targets, but for those that are there.
func matched(keys []Rated, targets []Key) []Move {
	slices.SortFunc(targets, Key.Compare)
	has := func(k Key) bool {
		_, found := search(keys, k)
		return found
	}
	vacant := slices.DeleteFunc(slices.Clone(targets), has)
	var moves []Move
	for _, r := range keys {
		if _, stays := slices.BinarySearchFunc(targets, r.Key, Key.Compare); !stays {
			moves = append(moves, Move{From: r.Key, To: vacant[len(moves)], Rate: r.Rate})
		}
	}
	return moves
}

// inTurn orders moves so that each To is free when its turn comes. after is the keys when
// all are made: what is free then is free when all but the rings are made, too.
func inTurn(after *Allocator, moves []Move) ([]Move, error) {
	from, to := make(map[Key]bool, len(moves)), make(map[Key]Move, len(moves))
	for _, m := range moves {
		from[m.From], to[m.To] = true, m
	}
	var ordered []Move
	// follow appends a move, and those that can be made one after the other because of it.
	follow := func(m Move) {
		for more := true; more; m, more = to[m.From] {
			ordered = append(ordered, m)
			delete(to, m.To)
		}
	}
	for _, m := range moves {
		if !from[m.To] {
			follow(m)
		}
	}
	for _, m := range moves { // of those that are left, each is in a ring
		if _, left := to[m.To]; !left {
			continue
		}
		spare, err := after.AllocateRated(0)
		if err != nil {
			return nil, err
		}
		after.remove(spare) // it is free again after the ring
		ordered = append(ordered, Move{From: m.From, To: spare, Rate: m.Rate})
		delete(to, m.To)
		follow(to[m.From])
		ordered = append(ordered, Move{From: spare, To: m.To, Rate: m.Rate})
	}
	return ordered, nil
}
