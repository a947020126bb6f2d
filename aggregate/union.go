package aggregate

import (
	"bytes"
)

// Union returns the first filter of a child shard: the merged states of its parents' filters at
// their ends. A nil parent was trimmed and counts as empty. The result shares no memory with the
// parents, and does not inherit Counts.
//
// The parents' clocks count different steps, so a producer keeps its age: the time on its parent's
// clock since its last record. A producer of both parents keeps the smaller age.
//
// Above MaxProducers or MaxLanes, Union drops the producers with the oldest last record.
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

// Clone returns a copy that shares nothing with f, Counts included.
func (f *Filter) Clone() *Filter {
	clone := Union(f)
	clone.Counts = f.Counts
	return clone
}

// join merges another filter's state of the same producer. last is the time of its last record on
// the child's clock.
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
