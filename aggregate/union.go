package aggregate

import (
	"bytes"
	"cmp"
	"slices"
)

// Union returns what a child shard's filter begins with: all that its parents' filters know at
// their ends. A nil parent has been trimmed and counts as empty. Nothing is shared with the
// parents. H and Counts are not taken over.
//
// Of more than MaxProducers or MaxLanes those producers are left out whose last record is the
// oldest.
func Union(parents ...*Filter) *Filter {
	child := &Filter{producers: map[ProducerID]*producer{}}
	for _, parent := range parents {
		if parent == nil {
			continue
		}
		child.now = max(child.now, parent.now)
		for id, from := range parent.producers {
			into := child.producers[id]
			if into == nil {
				into = newProducer(from.low, from.last)
				child.producers[id] = into
			}
			into.join(from)
		}
	}
	for _, p := range child.producers {
		p.pruneAt = 0
		p.prune()
		child.lanes += len(p.lanes)
	}
	child.shrink()
	return child
}

// Clone returns a copy that shares nothing with f, H and Counts included.
func (f *Filter) Clone() *Filter {
	clone := Union(f)
	clone.H, clone.Counts = f.H, f.Counts
	return clone
}

func (p *producer) join(other *producer) {
	p.last = max(p.last, other.last)
	if p.low == 0 || other.low == 0 {
		p.low, p.lanes = 0, nil
		return
	}
	p.low = max(p.low, other.low)
	for lane, number := range other.lanes {
		p.lanes[lane] = max(p.lanes[lane], number)
	}
}

// shrink forgets the oldest producers until the limits hold.
func (f *Filter) shrink() {
	if len(f.producers) <= MaxProducers && f.lanes <= MaxLanes {
		return
	}
	ids := f.sorted()
	slices.SortStableFunc(ids, func(a, b ProducerID) int {
		return cmp.Compare(f.producers[a].last, f.producers[b].last)
	})
	for _, id := range ids {
		if len(f.producers) <= MaxProducers && f.lanes <= MaxLanes {
			return
		}
		f.lanes -= len(f.producers[id].lanes)
		delete(f.producers, id)
	}
}

// sorted returns the producers in the order of their ids.
func (f *Filter) sorted() []ProducerID {
	ids := make([]ProducerID, 0, len(f.producers))
	for id := range f.producers {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b ProducerID) int { return bytes.Compare(a[:], b[:]) })
	return ids
}
