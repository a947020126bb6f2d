package itemstore

import (
	"cmp"
	"slices"
)

// Inspect returns every table as it is in memory, in order of world and name. It waits for
// nothing: for a log that is inspected, or has not begun to take frames.
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
