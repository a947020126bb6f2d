package producer

import "time"

const (
	// outageAfter is how many calls in a row have no answer when an outage is declared. One
	// cut connection is none: only the lanes that it carried wait.
	outageAfter = 3
	// probeEvery bounds the wait between two probes, and with it how late the end of an
	// outage is seen.
	probeEvery = time.Second
)

// outage tells lanes that fail from an endpoint that is not there. While it lasts, one call of
// one record at a time probes for the end: so an outage of any length costs each record the
// unknown attempts of its beginning and no more, and the first answer of any kind releases
// everything at once.
type outage struct {
	unanswered int // calls in a row without an answer
	began      time.Time
	failures   int       // probes without an answer
	next       time.Time // when the next probe may be made
	probing    bool      // a probe is in flight
}

func (o *outage) active() bool { return o.unanswered >= outageAfter }

// open reports whether a call may be made now.
func (o *outage) open(now time.Time) bool {
	return !o.active() || (!o.probing && !now.Before(o.next))
}
