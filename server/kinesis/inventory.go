package kinesis

import (
	"cmp"
	"slices"

	"github.com/runnel-stream/runnel/internal/awswire"
)

// Listed is a stream that there is.
type Listed struct {
	World awswire.World
	Name  string
}

// Inventory returns the streams of every account and region, whatever their states, in order.
func (s *Service) Inventory() []Listed {
	now := s.clock.read()
	var all []Listed
	for _, st := range s.allStreams() {
		if !st.gone(now) {
			all = append(all, Listed{st.World, st.Name})
		}
	}
	slices.SortFunc(all, func(a, b Listed) int {
		return cmp.Or(cmp.Compare(a.World.Account, b.World.Account),
			cmp.Compare(a.World.Region, b.World.Region), cmp.Compare(a.Name, b.Name))
	})
	return all
}
