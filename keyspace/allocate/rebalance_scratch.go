package allocate

import (
	"slices"

	"github.com/runnel-stream/runnel/keyspace"
)

// RebalanceScratch returns the moves to the keys of an initially empty Allocator that allocates for
// the highest rate first. If all rates are equal, these are the first keys of Space.Nth. A key
// stays in place if the new keys of its rate include it, so no shorter list of moves leads to these
// keys.
//
// Make the moves in their order: each To is free at its turn. If keys exchange places in a ring,
// one of them moves twice, by way of a spare key of the space.
//
// The errors wrap those of Allocator.AddRated, or ErrSpaceFull if there is no spare key.
func RebalanceScratch(space Space, assigned []Rated) ([]Move, error) {
	if err := New(space).AddRated(assigned...); err != nil {
		return nil, err
	}
	fresh := New(space)
	var moves []Move
	for rest := slices.SortedFunc(slices.Values(assigned), byRate); len(rest) > 0; {
		rate, n := rest[0].Rate, 0
		for n < len(rest) && rest[n].Rate == rate {
			n++
		}
		targets := make([]keyspace.Key, n)
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

// matched returns the moves of ascending keys to as many targets. Keys that are targets stay.
func matched(keys []Rated, targets []keyspace.Key) []Move {
	slices.SortFunc(targets, keyspace.Key.Compare)
	has := func(k keyspace.Key) bool {
		_, found := search(keys, k)
		return found
	}
	vacant := slices.DeleteFunc(slices.Clone(targets), has)
	var moves []Move
	for _, r := range keys {
		if _, stays := slices.BinarySearchFunc(targets, r.Key, keyspace.Key.Compare); !stays {
			moves = append(moves, Move{From: r.Key, To: vacant[len(moves)], Rate: r.Rate})
		}
	}
	return moves
}

// inTurn orders moves so that each To is free at its turn. after holds the keys after all moves: a
// key that is free there is also free when only rings remain.
func inTurn(after *Allocator, moves []Move) ([]Move, error) {
	from, to := make(map[keyspace.Key]bool, len(moves)), make(map[keyspace.Key]Move, len(moves))
	for _, m := range moves {
		from[m.From], to[m.To] = true, m
	}
	var ordered []Move
	// follow appends a move, then the move to the key that it frees, and so on.
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
	for _, m := range moves { // each remaining one is in a ring
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
