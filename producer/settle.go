package producer

import (
	"container/heap"
	"time"
)

// refuse handles the stream's refusal of the caller. With a Journal the unit stays open there and
// the producer halts, so that a later run sends the unit and skips no record.
func (c *core) refuse(now time.Time, l *lane) {
	if c.limits.journal {
		c.halt(l.unit.cause)
		c.holdUntil(l, now.Add(c.limits.retryMax), false)
		return
	}
	c.settleUnit(l, errRefusedForCaller)
	c.next(now, l)
}

// settleUnit ends a unit that is not delivered.
func (c *core) settleUnit(l *lane, reason error) {
	c.end(l, OutcomeUndelivered, c.ledger.settleUndelivered(&l.unit, reason))
}

// overdue reports whether a record has reached giveUp without an acknowledgement.
func (l *limits) overdue(now time.Time, e *entry) bool {
	return l.giveUp > 0 && now.Sub(e.taken) >= l.giveUp
}

// giveUpOverdue gives up the overdue records at the front of a lane. The lane must not be flying.
//
// A unit with an unknown attempt is in the stream as a whole or not at all, so it is given up when
// its youngest record is overdue. A copy of it may still be stored later. No filter delivers that
// copy behind later units of the lane, because its number is below theirs and below every later
// Low. In a unit without an unknown attempt, records are given up one by one.
func (c *core) giveUpOverdue(now time.Time, l *lane) {
	if c.limits.giveUp <= 0 {
		return
	}
	cause := l.unit.cause
	for u := &l.unit; u.first != nil && c.limits.overdue(now, u.first); {
		switch {
		case c.limits.overdue(now, u.last):
			c.settleUnit(l, ErrGivenUp)
		case u.unknown > 0:
			return
		default:
			c.unfold(now, l)
		}
	}
	if l.unit.first != nil {
		return
	}
	for l.first != nil && c.limits.overdue(now, l.first) {
		if l.first.tried == 0 {
			cause = nil
		}
		c.ledger.settleAlone(l.pop(), cause, ErrGivenUp)
	}
}

// giveUpInUnit gives up the overdue records of a unit that is being unfolded, and removes them.
func (c *core) giveUpInUnit(now time.Time, u *unit) {
	for at := &u.first; *at != nil; {
		e := *at
		if !c.limits.overdue(now, e) {
			at = &e.next
			continue
		}
		*at, e.next = e.next, nil
		c.ledger.settleAlone(e, u.cause, ErrGivenUp)
	}
}

// expectOverdue schedules a sweep after a put if none is scheduled, and reports whether it did.
func (c *core) expectOverdue(now time.Time) bool {
	if c.limits.giveUp <= 0 || !c.sweepAt.IsZero() {
		return false
	}
	c.sweepAt = now.Add(c.limits.giveUp)
	return true
}

// sweep gives up the overdue records of all lanes, except those that are flying or searching: their
// records are given up when they land, so that the results of a lane come in its order. A lane that
// becomes empty is removed when its turn comes, or at once if it is held.
//
// The next sweep is at the deadline of the next record; ages has the records in the order of their
// deadlines. But it is at least a 32nd of giveUp away, because a flying lane may have many overdue
// records.
func (c *core) sweep(now time.Time) {
	if c.sweepAt.IsZero() || now.Before(c.sweepAt) {
		return
	}
	c.sweepAt = time.Time{}
	c.sweeps++
	var due []*lane
	for e := c.ledger.ages.oldest; e != nil; e = e.newer {
		if !c.limits.overdue(now, e) {
			c.sweepAt = e.taken.Add(c.limits.giveUp)
			if soonest := now.Add(c.limits.giveUp / 32); c.sweepAt.Before(soonest) {
				c.sweepAt = soonest
			}
			break
		}
		if l := e.lane; l.state != flying && l.state != searching && l.swept != c.sweeps {
			l.swept = c.sweeps
			due = append(due, l)
		}
	}
	for _, l := range due {
		c.giveUpOverdue(now, l)
		if l.state == held && l.unit.first == nil {
			heap.Remove(&c.held, l.index)
			c.next(now, l)
		}
	}
}

// abandon ends all records for one reason. No call may be in flight, and none will be made.
func (c *core) abandon(reason error) {
	ended := len(c.ledger.ended)
	halted := reason == ErrHalted //nolint:errorlint // one of the reasons, as it is
	for e := c.ledger.ages.oldest; e != nil; e = c.ledger.ages.oldest {
		l := e.lane
		if l.unit.first == nil {
			var cause error
			if halted {
				cause = c.halted
			}
			c.ledger.settleAlone(l.pop(), cause, reason)
			continue
		}
		if halted {
			l.unit.cause = c.halted
		}
		c.settleUnit(l, reason)
	}
	// The journal gets none of these ends: the next run sends the units and records again.
	c.ledger.ended = c.ledger.ended[:ended]
	clear(c.lanes)
	c.ready = readyLanes{back: laneHeap{before: byPlace}}
	c.held = laneHeap{before: byDue}
	c.groups.clear()
	c.toLookUp, c.shards = nil, shards{}
	c.chart.waiting = lane{queue: true, state: unmapped}
}
