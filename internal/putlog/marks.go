package putlog

import (
	"maps"
	"slices"
)

// marks is the set of records in a unit: all below low and those in above, except those in again,
// which are to be frozen again. The producer's limit on held records bounds above and again.
type marks struct {
	low   uint64
	above map[uint64]struct{}
	again map[uint64]struct{}
}

func newMarks() marks {
	return marks{above: map[uint64]struct{}{}, again: map[uint64]struct{}{}}
}

// seen reports whether the record was in a unit at any time.
func (m *marks) seen(mark uint64) bool {
	_, above := m.above[mark]
	return above || mark < m.low
}

// add adds the marks of a frozen unit.
func (m *marks) add(list []uint64) {
	for _, mark := range list {
		delete(m.again, mark)
		if mark >= m.low {
			m.above[mark] = struct{}{}
		}
	}
	for {
		if _, ok := m.above[m.low]; !ok {
			return
		}
		delete(m.above, m.low)
		m.low++
	}
}

// remove adds to again the marks of a unit with the fate Again.
func (m *marks) remove(list []uint64) {
	for _, mark := range list {
		m.again[mark] = struct{}{}
	}
}

func sorted(m map[uint64]struct{}) []uint64 { return slices.Sorted(maps.Keys(m)) }

func set(list []uint64) map[uint64]struct{} {
	m := make(map[uint64]struct{}, len(list))
	for _, mark := range list {
		m[mark] = struct{}{}
	}
	return m
}
