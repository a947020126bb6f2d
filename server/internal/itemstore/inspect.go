package itemstore

import (
	"cmp"
	"slices"
)

// Inspect returns the state of every table in memory, ordered by world and name. It does not wait
// for durability: use it on a log that is being inspected or does not take frames yet, or for
// figures that promise nothing.
func (s *Store) Inspect() []Stats {
	s.mu.RLock()
	defer s.mu.RUnlock()
	tables := make([]Stats, 0, len(s.mu.byID))
	for _, t := range s.mu.byID {
		t.mu.RLock()
		tables = append(tables, t.statsLocked())
		t.mu.RUnlock()
	}
	slices.SortFunc(tables, func(a, b Stats) int {
		return cmp.Or(
			cmp.Compare(a.Meta.World.Account, b.Meta.World.Account),
			cmp.Compare(a.Meta.World.Region, b.Meta.World.Region),
			cmp.Compare(a.Meta.Name, b.Meta.Name))
	})
	return tables
}
