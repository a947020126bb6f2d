package lease

import (
	"time"

	"github.com/runnel-stream/runnel"
)

// Sighting is a lease as it was last read, with the time of its counter's last change by the
// observer's own clock.
type Sighting struct {
	Lease
	// Changed is the time at which the observer first saw this counter. The change itself is older.
	// So if an owner drops its lease one failover time after its last write, it has dropped it
	// before that time has passed since Changed.
	Changed time.Time
}

// Watch finds out which owners are alive. It only compares each counter with its own earlier value,
// over time measured on one machine. The zero value has seen no lease. It is used by one goroutine.
type Watch struct {
	seen map[runnel.ShardID]Sighting
}

// Expired reports whether the lease has an owner that has not changed the counter for longer than
// the failover time.
func (s Sighting) Expired(now time.Time, failover time.Duration) bool {
	return s.Owner != "" && now.Sub(s.Changed) > failover
}

// Update takes a complete list of the leases, read before now, and returns a Sighting of each, in
// the list's order. It forgets leases that are not listed.
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
