package producer

import "time"

// streamTime holds the stream's time, which is the Date of its answers. The stream's clock never
// goes back, and it also sets the arrival times of records. So a record that is put after an answer
// does not arrive before the answer's Date. That holds however wrong the producer's own clock is,
// and also if the stream's clock stops or is set forward in between. Therefore a Date is never
// extrapolated by another clock.
type streamTime struct {
	latest time.Time // the last Date, in whole seconds; zero: no answer had one
	seen   time.Time // when the call of that answer was sent, by the core's clock
	fresh  time.Time // seen, or later if a request for the time was answered since
	none   bool      // the answers have no Date

	first     time.Time // the first Date of the run, and
	firstSeen time.Time // when its call was sent

	wanted   bool      // a unit waits for a Date
	asking   bool      // a request for the time is under way
	asked    time.Time // when it was sent
	probing  bool      // it also probes for the end of an outage
	failures int       // requests that failed in a row
	next     time.Time // when the next request may be sent, after failures
}

const (
	// dateStep is the resolution of a Date: the real time is up to dateStep later.
	dateStep = time.Second
	// A Date and an arrival time of the same moment may differ by one part in skewShare of H, where
	// different machines of a service set them. A stream of runnel has one clock and does not need
	// it.
	skewShare = 10
	// If the last Date is older than one part in staleShare of H, a unit gets a newer one before
	// its first attempt. The older one would do, but then a look-up has more to read.
	staleShare = 5
)

func (l *limits) skew() time.Duration { return l.horizon / skewShare }

// behind returns the earliest arrival time that is certainly after an answer with that Date; zero
// if the answer had none.
func (l *limits) behind(date time.Time) time.Time {
	if date.IsZero() {
		return date
	}
	return date.Add(dateStep + l.skew())
}

// saw takes the Date of an answer, or zero if it had none. sent is when the call was sent. The
// stream made the Date at that moment or later. So its clock has advanced by at most the time since
// sent, unless it was set forward.
func (t *streamTime) saw(sent, date time.Time) {
	if date.IsZero() {
		t.none = t.latest.IsZero()
		return
	}
	t.latest, t.seen, t.fresh, t.none = date, sent, sent, false
	if t.first.IsZero() {
		t.first, t.firstSeen = date, sent
	}
}

// stale reports whether a unit must wait for a Date before its first attempt.
func (c *core) stale(now time.Time) bool {
	t := &c.dates
	return c.limits.reads && !t.none &&
		(t.fresh.IsZero() || now.Sub(t.fresh) > c.limits.horizon/staleShare)
}

// ask reports whether the shell must ask the stream for its time now, and then call landAsk. During
// an outage that request is the probe.
func (c *core) ask(now time.Time) bool {
	t := &c.dates
	if t.asking || c.ready.count == 0 || !c.stale(now) || now.Before(t.next) ||
		!c.gate.open(now) || c.chart.running {
		return false
	}
	t.asking, t.asked, t.probing = true, now, c.gate.active()
	c.gate.probing = c.gate.probing || t.probing
	return true
}

// landAsk takes the result of a request for the time: answered or not, and with a Date or without.
// An answer does not end an outage, because the outage may affect puts only. But the next put
// probes at once.
func (c *core) landAsk(now, date time.Time, answered bool) {
	t := &c.dates
	probe := t.probing
	t.asking, t.probing = false, false
	if probe {
		c.gate.probing = false
	}
	if !answered {
		t.failures++
		most := min(c.limits.retryMax, probeEvery)
		t.next = now.Add(c.limits.backoff(most, c.random).After(t.failures))
		c.noAnswer(now, &call{probe: probe})
		return
	}
	t.failures, t.next = 0, time.Time{}
	if c.gate.active() {
		c.gate.next = now
	}
	t.saw(t.asked, date)
	t.fresh = now
}

// wake returns when ask must be called again.
func (t *streamTime) wake(gate *outage) (at time.Time, ok bool) {
	if t.asking || gate.probing {
		return at, false
	}
	if at = t.next; gate.active() && gate.next.After(at) {
		at = gate.next
	}
	return at, true
}

// stamp sets the times of a unit's first attempt.
func (c *core) stamp(now time.Time, u *unit) {
	u.firstSent = now
	if c.dates.latest.IsZero() {
		u.from = now.Add(-2 * c.limits.horizon) // fall back to the producer's clock
		return
	}
	u.since, u.sinceSeen = c.dates.latest, c.dates.seen
	u.from = u.since.Add(-c.limits.skew())
}
