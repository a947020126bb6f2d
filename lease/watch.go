package lease

import (
	"time"

	"github.com/runnel-stream/runnel"
)

// Sighting is a lease as it was last read, and since when its counter has stood still by the
// observer's own clock.
type Sighting struct {
	Lease
	// Changed is when the observer first saw this counter. The change itself is older, so an
	// owner that has dropped its lease a failover time after its last write has dropped it
	// before that time has passed since Changed.
	Changed time.Time
}

// Watch sees which owners are alive: the one thing it compares is a counter with itself, over
// time measured on one machine. The zero value has seen nothing. It is used by one goroutine.
type Watch struct {
	seen map[runnel.ShardID]Sighting
}

// Expired reports whether the lease has an owner whose counter has stood still for longer than
// the failover time.
func (s Sighting) Expired(now time.Time, failover time.Duration) bool {
	return s.Owner != "" && now.Sub(s.Changed) > failover
}

// Update takes a complete list of the leases, read before now, and returns what is known of
// each, in the list's order. Leases that are not listed are forgotten.
func (w *Watch) Update(now time.Time, leases []Lease) []Sighting {
	view := make([]Sighting, len(leases))
	next := make(map[runnel.ShardID]Sighting, len(leases))
	for i, l := range leases {
		before, known := w.seen[l.Key]
		s := Sighting{Lease: l, Changed: now}
		if known && before.Counter == l.Counter && before.Owner == l.Owner {
			s.Changed = before.Changed
		}
		view[i], next[l.Key] = s, s
	}
	w.seen = next
	return view
}
