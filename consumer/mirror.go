package consumer

import (
	"fmt"

	"github.com/runnel-stream/runnel/aggregate"
	"github.com/runnel-stream/runnel/sink"
)

// mirror is the filter as it was behind the page that is being delivered. The fetcher's filter is a
// page ahead, and to marshal it for each page would take longer than the page. So each page carries
// the change of the filter's state, which is as small as the page is. The mirror applies these
// changes, and is marshalled when the sink asks for the state. It belongs to the delivering
// goroutine.
type mirror struct {
	filter *aggregate.Filter
	// based is true if the sink has the state on which the next change builds.
	based bool
	// met is true once a unit was met. Until then the state is nil, because programs without
	// support for states can only read a commit without one.
	met bool
}

// newMirror mirrors a filter, which tracks its changes from now on. found is true if the sink has
// the filter's state.
func newMirror(filter *aggregate.Filter, found bool) *mirror {
	filter.Track()
	empty := filter.Empty() // then the change is since an empty state
	return &mirror{filter: filter.Clone(), based: found || empty, met: found || !empty}
}

// batch adds the reader's state, and its change, to a page's batch.
func (m *mirror) batch(b *sink.Batch, p *page) error {
	if m == nil {
		return nil
	}
	delta := new(aggregate.Delta)
	if err := delta.UnmarshalBinary(p.change); err != nil {
		return fmt.Errorf("the state behind %s: %w", p.through, err)
	}
	m.filter.Apply(delta)
	// At the shard's end there is a state even if no unit was met. It informs the children that
	// there is no unit, so that they need not read the shard again.
	if m.met = m.met || !m.filter.Empty() || p.ended; !m.met {
		return nil
	}
	b.State = m.state
	if m.based {
		b.Delta = p.change
	}
	m.based = true
	return nil
}

func (m *mirror) state() []byte {
	state, _ := m.filter.MarshalBinary() // it returns no error
	return state
}
