package producer

import (
	"time"

	"github.com/runnel-stream/runnel"
)

// How long a unit is sent, and when and where it is looked up. H is limits.horizon.
//
// The promises of the stream, AWS's and runnel's: a call is stored within 2H after its send, the
// longest life of its signature (the date may be H old or H ahead); the stream's clock, which makes
// Dates and arrivals, never steps back; the sequence numbers of a shard grow, and its records
// become readable in their order.
//
// Sending. A unit is sent for H after its first send, by a clock that is never set and counts sleep
// (type clock). So its copies are stored within 3H of its first send. Readers remember its producer
// for 4H of their own clock, which advances by no more than really goes by, and a minute for each
// time that the stream's clock is set forward.
//
// When. A unit is looked up 2H after its last send. If it is not in the shard then, it never will
// be. A margin is added for nothing but rounding.
//
// Where it begins. Before any copy: behind a record that was acknowledged before the first send
// (type marks), or at the stream's time that was seen before it (type streamTime). The producer's
// own clock has no part in it, unless the stream says no time at all.
//
// Where it ends. At MillisBehindLatest 0, which the stream says only when nothing of the shard is
// stored and not readable yet; at the end of a closed shard; or, since a busy shard may never say
// 0, behind a record that arrived after a Date which the search itself has seen: the search began
// when no copy could come any more, so that all copies are before that record.

// clockMargin is the part of H that is added to the wait for a look-up.
const clockMargin = 30

// expire decides about a unit that was first sent longer than the horizon ago, and so is not
// sent again. Where every attempt surely failed its records simply go out as a new unit.
// Otherwise it is looked up, but not before nothing of it can be stored any more: two horizons
// after its last attempt.
func (c *core) expire(now time.Time, l *lane) {
	u := &l.unit
	switch {
	case u.unknown == 0:
		c.renew(now, l)
	case !c.limits.reads:
		c.settleUnit(l, ErrUnresolved)
		c.next(now, l)
	default:
		u.doomed = true
		c.holdUntil(l, u.lastSent.Add(2*c.limits.horizon+c.limits.horizon/clockMargin), false)
	}
}

// renew sends the records of a unit, which is not in the stream and never will be, anew.
func (c *core) renew(now time.Time, l *lane) {
	c.ledger.counts.renewed++
	c.unfold(now, l)
	c.next(now, l)
}

// lookups is the state of reading what became of units. One search is made at a time.
type lookups struct {
	running  bool
	failures int
	next     time.Time // when another may be made, after failures
}

func (s *lookups) wake(waiting int) (at time.Time, ok bool) {
	return s.next, waiting > 0 && !s.running
}

// search looks for the units of some lanes.
type search struct {
	lanes []*lane
	// until is a time of the stream. No copy of the units is behind a record that arrived
	// later. Zero: it is not known.
	until time.Time
	waits bool // it was logged that it waits for records that cannot be read
}

// found is what a search says of one unit: it is stored, surely absent, or nobody can tell.
type found struct {
	verdict verdict
	absent  bool
	err     error // nobody can tell
}

// search returns the next search to make, or nil.
func (c *core) search(now time.Time) *search {
	if c.lookups.running || len(c.doubted) == 0 || now.Before(c.lookups.next) {
		return nil
	}
	s := &search{}
	for _, l := range c.doubted {
		u := &l.unit
		if u.first == nil || !u.doomed { // it was given up
			c.next(now, l)
			continue
		}
		l.state = searching
		s.lanes = append(s.lanes, l)
	}
	c.doubted = nil
	if len(s.lanes) == 0 {
		return nil
	}
	c.lookups.running = true
	c.ledger.counts.lookedUp += uint64(len(s.lanes))
	return s
}

// landSearch takes what a search has found, in the order of its lanes. With an error it has
// found nothing out, and is made again.
func (c *core) landSearch(now time.Time, s *search, results []found, err error) {
	c.lookups.running = false
	if err != nil {
		c.lookups.failures++
		c.lookups.next = now.Add(
			c.limits.backoff(c.limits.retryMax, c.random).After(c.lookups.failures))
		for _, l := range s.lanes {
			l.state = doubted
			c.doubted = append(c.doubted, l)
		}
		return
	}
	c.lookups.failures, c.lookups.next = 0, time.Time{}
	c.endOutage(now)
	for i, l := range s.lanes {
		switch r := results[i]; {
		case r.err != nil && c.limits.journal && isFinal(r.err):
			c.halt(r.err) // a run that may read looks the unit up
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

// placed is the verdict on a unit that was found.
func placed(shard runnel.ShardID, sequence runnel.SequenceNumber) verdict {
	return verdict{fate: stored, shard: shard, sequence: sequence}
}
