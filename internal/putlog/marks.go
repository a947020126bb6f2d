package putlog

import (
	"maps"
	"slices"
)

// marks is which records are in a unit: those below low and those above it, without those that
// are to be frozen again. What a producer holds bounds above and again.
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

// add takes in the marks of a unit that was frozen.
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

// remove takes out the marks of a unit whose records are to be frozen again.
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
