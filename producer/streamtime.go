package producer

import "time"

// streamTime holds the stream's time: the Date of its answers. The stream's clock never steps back,
// and a record's arrival is its time too. So the arrival of a record that is put after an answer
// was seen is not before the answer's Date. That holds however wrong the producer's own clock is,
// and whether the stream's clock stops meanwhile or is set forward; so no other clock carries a
// Date on.
type streamTime struct {
	latest time.Time // the Date of the last answer, in whole seconds; zero: none was seen
	seen   time.Time // when that answer's call was sent, by the core's clock
	fresh  time.Time // when seen, or when an answer that was asked for had no Date
	none   bool      // the answers have no Date

	first     time.Time // the first Date of the run
	firstSeen time.Time

	wanted   bool // something waits for a Date
	asking   bool // the shell asks for one
	asked    time.Time
	probing  bool // and finds out whether an outage has ended
	failures int
	next     time.Time // when it may ask again, after failures
}

const (
	// dateStep is the resolution of a Date: the time that it says is up to so much ago.
	dateStep = time.Second
	// skewShare is the part of H by which a Date and an arrival may differ although they are
	// of one moment, where different machines of a service make them. A stream of runnel has
	// one clock and needs none of it.
	skewShare = 10
	// staleShare is the part of H after which a first send asks for a newer Date. An older one
	// would do, but a look-up then reads that much more.
	staleShare = 5
)

func (l *limits) skew() time.Duration { return l.horizon / skewShare }

// behind returns the earliest arrival of which it is certain that it was after an answer with that
// Date; zero where the answer had none.
func (l *limits) behind(date time.Time) time.Time {
	if date.IsZero() {
		return date
	}
	return date.Add(dateStep + l.skew())
}

// saw takes the Date of an answer to a call that was sent at a moment, or that it has none. The
// stream made the Date at that moment or later. Since that moment its clock has advanced by no more
// than the time that has gone by, unless it was set forward.
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

// stale reports whether a unit has to wait for a Date before its first send.
func (c *core) stale(now time.Time) bool {
	t := &c.dates
	return c.limits.reads && !t.none &&
		(t.fresh.IsZero() || now.Sub(t.fresh) > c.limits.horizon/staleShare)
}

// ask reports whether the shell is to ask the stream for its time. Then it lands with landAsk.
// While nothing answers, that is the probe for the end of the outage.
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

// landAsk takes that the stream has answered, with its time or without, or that it has not. An
// answer does not end an outage, which may be one of puts alone, but the next put finds out at
// once.
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

// wake returns when ask is to be called again.
func (t *streamTime) wake(gate *outage) (at time.Time, ok bool) {
	if t.asking || gate.probing {
		return at, false
	}
	if at = t.next; gate.active() && gate.next.After(at) {
		at = gate.next
	}
	return at, true
}

// stamp notes when a unit goes out for the first time.
func (c *core) stamp(now time.Time, u *unit) {
	u.firstSent = now
	if c.dates.latest.IsZero() {
		u.from = now.Add(-2 * c.limits.horizon) // the producer's clock has to do
		return
	}
	u.since, u.sinceSeen = c.dates.latest, c.dates.seen
	u.from = u.since.Add(-c.limits.skew())
}
