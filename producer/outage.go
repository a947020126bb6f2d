package producer

import "time"

const (
	// outageAfter is the number of calls without an answer in a row that make an outage. A single
	// cut connection makes none: only the lanes that it carried wait.
	outageAfter = 3
	// probeEvery bounds the wait between two probes, and so the delay at the end of an outage.
	probeEvery = time.Second
)

// outage distinguishes an endpoint that does not answer from single failed calls. During an outage,
// one call of one unit at a time probes for its end. So an outage of any length costs a record no
// more than the unknown attempts of its beginning, and the first answer of any kind releases all
// lanes at once.
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
