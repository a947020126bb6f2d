package kinesis

import (
	"slices"

	"github.com/runnel-stream/runnel/internal/wire"
)

// Listed is an existing stream.
type Listed struct {
	World wire.World
	Name  string
}

// Inventory returns the streams of every account and region, whatever their states, in order.
func (s *Service) Inventory() []Listed {
	now := s.streams.clock.read()
	var all []Listed
	for _, st := range s.streams.all() {
		if !st.Gone(now) {
			all = append(all, Listed{st.World, st.Name})
		}
	}
	slices.SortFunc(all, Listed.compare)
	return all
}
