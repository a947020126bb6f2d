package producer

import (
	"time"

	"github.com/runnel-stream/runnel"
)

// clockMargin is what is added to a horizon before a unit is taken to have settled: a thirtieth,
// for what a stream takes in at the last moment and shows a little later.
const clockMargin = 30

// elapsed is how long ago then was, by the clock that says more: the monotonic one stands still
// while a machine sleeps, and the wall's may be set back.
func elapsed(then, now time.Time) time.Duration {
	return max(now.Sub(then), now.Round(0).Sub(then.Round(0)))
}

// expire decides about a unit that was first sent longer than the horizon ago, and so is not
// sent again. Where every attempt surely failed its records simply go out as a new unit.
// Otherwise it is looked up, but not before nothing of it can be stored any more: a horizon
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
		c.holdUntil(l, u.lastSent.Add(c.limits.horizon+c.limits.horizon/clockMargin), false)
	}
}

// renew sends the records of a unit, which is not in the stream and never will be, anew.
func (c *core) renew(now time.Time, l *lane) {
	c.counts.renewed++
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

// search asks what became of the units of some lanes, in the records that arrived in
// [from, until]. Both have a margin for clocks that differ.
type search struct {
	lanes       []*lane
	from, until time.Time
	oldest      time.Time // without the margin
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
		if from := u.firstSent; s.oldest.IsZero() || from.Before(s.oldest) {
			s.oldest = from
		}
		if until := u.lastSent.Add(2 * c.limits.horizon); until.After(s.until) {
			s.until = until
		}
	}
	c.doubted = nil
	if len(s.lanes) == 0 {
		return nil
	}
	s.from = s.oldest.Add(-c.limits.horizon)
	c.lookups.running = true
	c.counts.lookedUp += uint64(len(s.lanes))
	return s
}

// landSearch takes what a search has found, in the order of its lanes. With an error it has
// found nothing out, and is made again.
func (c *core) landSearch(now time.Time, s *search, results []found, err error) {
	c.lookups.running = false
	if err != nil {
		c.lookups.failures++
		c.lookups.next = now.Add(
			backoff(c.lookups.failures, c.limits.retryMin, c.limits.retryMax, c.random))
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
			c.counts.found++
			c.acknowledge(now, l, r.verdict)
		}
	}
}

// placed is the verdict on a unit that was found.
func placed(shard runnel.ShardID, sequence runnel.SequenceNumber) verdict {
	return verdict{fate: stored, shard: shard, sequence: sequence}
}
