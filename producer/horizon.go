package producer

import (
	"time"

	"github.com/runnel-stream/runnel"
)

// This file decides how long a unit is sent, and when and where it is looked up. H is
// limits.horizon.
//
// It relies on three promises, which AWS's streams and runnel's keep:
//
//   - A call is stored at most 2H after it was sent. That is the longest life of a signature: its
//     date may be up to H in the past or the future.
//   - The stream's clock, which sets Dates and arrival times, never goes back.
//   - The sequence numbers of a shard grow, and its records become readable in that order.
//
// How long a unit is sent: H from its first attempt, by a clock that is never set and that counts
// sleep (type clock). So all its copies are stored at most 3H after its first attempt. Readers
// remember its producer for 4H by a clock of their own. That clock advances by no more than real
// time, and by a minute more each time that the stream's clock is set forward.
//
// When a unit is looked up: 2H after its last attempt. If it is not in the shard then, it never
// will be. The small margin added covers only rounding.
//
// Where a look-up begins: before any copy. That is behind a record that was acknowledged before the
// first attempt (type marks), or at the stream's time as seen before the first attempt (type
// streamTime). The producer's own clock is used only if the stream's answers have no time.
//
// Where a look-up ends:
//
//   - at MillisBehindLatest 0, which the stream reports only if every stored record of the shard is
//     readable,
//   - at the end of a closed shard,
//   - behind a record that arrived after a Date which the look-up itself has seen. A busy
//     shard may never report 0. The look-up began when no copy could arrive any more, so all
//     copies are before that record.

// clockMargin: one part in clockMargin of H is added to the wait for a look-up.
const clockMargin = 30

// expire handles a unit that was first sent longer ago than the horizon, and so is not sent again.
// If every attempt certainly failed, its records go into a new unit. Otherwise it is to be looked
// up, but only when no copy of it can be stored any more: two horizons after its last attempt.
func (c *core) expire(now time.Time, l *lane) {
	u := &l.unit
	switch {
	case u.unknown == 0:
		c.renew(now, l)
	case !c.limits.reads:
		c.settleUnit(l, ErrUnresolved)
		c.next(now, l)
	default:
		u.lookUpDue = true
		c.holdUntil(l, u.lastSent.Add(2*c.limits.horizon+c.limits.horizon/clockMargin), false)
	}
}

// renew puts the records of a unit that certainly is not and never will be in the stream into a new
// unit.
func (c *core) renew(now time.Time, l *lane) {
	c.ledger.counts.renewed++
	c.unfold(now, l)
	c.next(now, l)
}

// lookups is the state of the look-ups. One search runs at a time.
type lookups struct {
	running  bool
	failures int
	next     time.Time // when the next search may begin, after failures
}

func (s *lookups) wake(waiting int) (at time.Time, ok bool) {
	return s.next, waiting > 0 && !s.running
}

// search is one look-up of the units of some lanes.
type search struct {
	lanes []*lane
	// until is a time of the stream. In each shard, all copies of the units are before the first
	// record that arrived later. Zero: unknown.
	until time.Time
	waits bool // a message was logged because the search waits for unreadable records
}

// found is the result of a search for one unit: stored, absent, or an error.
type found struct {
	verdict verdict
	absent  bool
	err     error // it cannot be known whether the unit is stored
}

// search returns the next search to run, or nil.
func (c *core) search(now time.Time) *search {
	if c.lookups.running || len(c.toLookUp) == 0 || now.Before(c.lookups.next) {
		return nil
	}
	s := &search{}
	for _, l := range c.toLookUp {
		u := &l.unit
		if u.first == nil || !u.lookUpDue { // it was given up
			c.next(now, l)
			continue
		}
		l.state = searching
		s.lanes = append(s.lanes, l)
	}
	c.toLookUp = nil
	if len(s.lanes) == 0 {
		return nil
	}
	c.lookups.running = true
	c.ledger.counts.lookedUp += uint64(len(s.lanes))
	return s
}

// landSearch takes the results of a search, in the order of its lanes. With an error there are no
// results, and the search is repeated later.
func (c *core) landSearch(now time.Time, s *search, results []found, err error) {
	c.lookups.running = false
	if err != nil {
		c.lookups.failures++
		c.lookups.next = now.Add(
			c.limits.backoff(c.limits.retryMax, c.random).After(c.lookups.failures))
		for _, l := range s.lanes {
			l.state = toLookUp
			c.toLookUp = append(c.toLookUp, l)
		}
		return
	}
	c.lookups.failures, c.lookups.next = 0, time.Time{}
	c.endOutage(now)
	for i, l := range s.lanes {
		switch r := results[i]; {
		case r.err != nil && c.limits.journal && isFinal(r.err):
			c.halt(r.err) // a later run with the right to read looks the unit up
			c.holdUntil(l, now.Add(c.limits.retryMax), false)
		case r.err != nil:
			l.unit.cause = r.err
			c.settleUnit(l, ErrUnresolved)
			c.next(now, l)
		case r.absent:
			c.renew(now, l)
		default:
			c.ledger.counts.found++
			c.acknowledge(now, l, r.verdict)
		}
	}
}

// placed returns the verdict on a unit that was found.
func placed(shard runnel.ShardID, sequence runnel.SequenceNumber) verdict {
	return verdict{fate: stored, shard: shard, sequence: sequence}
}
