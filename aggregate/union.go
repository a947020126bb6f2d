package aggregate

import (
	"bytes"
)

// Union returns what a child shard's filter begins with: all that its parents' filters know at
// their ends. A nil parent has been trimmed and counts as empty. Nothing is shared with the
// parents. H and Counts are not taken over.
//
// The parents' clocks count different steps, so a producer keeps its age: the time on its parent's
// clock since its last record, and of two ages the smaller one.
//
// Of more than MaxProducers or MaxLanes those producers are left out whose last record is the
// oldest.
func Union(parents ...*Filter) *Filter {
	child := &Filter{producers: map[ProducerID]*producer{}}
	for _, parent := range parents {
		if parent == nil {
			continue
		}
		child.clock = max(child.clock, parent.clock)
		child.arrival = max(child.arrival, parent.arrival)
	}
	for _, parent := range parents {
		if parent == nil {
			continue
		}
		for id, from := range parent.producers {
			last := child.clock - (parent.clock - from.last)
			into := child.producers[id]
			if into == nil {
				into = newProducer(from.low, last)
				child.producers[id] = into
			}
			into.join(from, last)
		}
	}
	for _, p := range child.producers {
		p.pruneAt = 0
		p.prune()
		child.lanes += len(p.lanes)
	}
	child.evict(MaxProducers, MaxLanes, child.clock)
	return child
}

// Clone returns a copy that shares nothing with f, H and Counts included.
func (f *Filter) Clone() *Filter {
	clone := Union(f)
	clone.H, clone.Counts = f.H, f.Counts
	return clone
}

// join adds the knowledge of another filter. last is its last record on p's clock.
func (p *producer) join(other *producer, last int64) {
	p.last = max(p.last, last)
	if p.low == 0 || other.low == 0 {
		p.low, p.lanes = 0, nil
		return
	}
	p.low = max(p.low, other.low)
	for lane, number := range other.lanes {
		p.lanes[lane] = max(p.lanes[lane], number)
	}
}

func compareIDs(a, b ProducerID) int { return bytes.Compare(a[:], b[:]) }
