package producer

import (
	"slices"
	"time"
)

// settle gives a record its result. Whoever calls it has taken the record out of its lane, or
// does so next.
func (c *core) settle(e *entry, r Result) {
	if r.Err == nil {
		c.counts.delivered++
	} else {
		c.counts.undelivered++
	}
	c.ages.remove(e)
	c.settled = append(c.settled, settled{entry: e, result: r})
	c.markFlushes()
}

// settleUnit ends a unit that is not delivered.
func (c *core) settleUnit(l *lane, reason error) {
	u := &l.unit
	c.settle(u.entry, Result{Attempts: u.attempts, Unknown: u.unknown, Err: &UndeliveredError{
		Stream: c.stream, PartitionKey: l.key.partition, Reason: reason,
		Attempts: u.attempts, Unknown: u.unknown, Cause: u.cause,
	}})
	l.land()
}

// settleHead ends the head of a lane that is not delivered, whether or not it was ever sent.
func (c *core) settleHead(l *lane, reason error) {
	if l.unit.entry == nil {
		l.unit = unit{entry: l.pop()}
	}
	c.settleUnit(l, reason)
}

// overdue reports whether a record is without an acknowledgement for too long.
func (c *core) overdue(now time.Time, e *entry) bool {
	return c.limits.giveUp > 0 && now.Sub(e.taken) >= c.limits.giveUp
}

// giveUpOverdue gives up the records at the head of a lane that are overdue. The lane is not
// flying.
func (c *core) giveUpOverdue(now time.Time, l *lane) {
	for head := l.head(); head != nil && c.overdue(now, head); head = l.head() {
		c.settleHead(l, ErrGivenUp)
	}
}

// sweep gives up what is overdue in all lanes but those that are flying: there it is done when
// they land, so that the results of a lane come in its order. A lane that is emptied by it
// stays where it is until its turn comes.
//
// Records stand in ages in the order of their deadlines. What is overdue in flying lanes may
// be a long backlog, which is why the next sweep is not made at every event, but at the next
// deadline and not before a 32nd of the time has gone by.
func (c *core) sweep(now time.Time) {
	if c.sweepAt.IsZero() || now.Before(c.sweepAt) {
		return
	}
	c.sweepAt = time.Time{}
	for e := c.ages.oldest; e != nil; {
		if !c.overdue(now, e) {
			c.sweepAt = e.taken.Add(c.limits.giveUp)
			if soonest := now.Add(c.limits.giveUp / 32); c.sweepAt.Before(soonest) {
				c.sweepAt = soonest
			}
			return
		}
		newer, l := e.newer, e.lane
		if l.state != flying {
			c.settleHead(l, ErrGivenUp) // e: what was older in its lane has just been given up
		}
		e = newer
	}
}

// abandon ends everything. No call is in flight any more, and none will be made.
func (c *core) abandon() {
	for e := c.ages.oldest; e != nil; e = c.ages.oldest {
		c.settleHead(e.lane, ErrClosed)
	}
	c.lanes = map[laneKey]*lane{}
	c.ready = readyLanes{back: laneHeap{before: byPlace}}
	c.held = laneHeap{before: byDue}
}

// flush asks for a mark behind the results of everything that was taken so far. Until it is
// reached nothing lingers.
func (c *core) flush(done chan<- struct{}) {
	c.flushes = append(c.flushes, flush{through: c.taken, done: done})
	c.markFlushes()
}

// forget withdraws a flush that nobody waits for any more.
func (c *core) forget(done chan<- struct{}) {
	c.flushes = slices.DeleteFunc(c.flushes, func(f flush) bool { return f.done == done })
}

// markFlushes puts the marks of finished flushes behind the results. Flushes are in the order
// of what they wait for.
func (c *core) markFlushes() {
	for len(c.flushes) > 0 {
		if oldest := c.ages.oldest; oldest != nil && oldest.number <= c.flushes[0].through {
			return
		}
		c.settled = append(c.settled, settled{flushed: c.flushes[0].done})
		c.flushes = slices.Delete(c.flushes, 0, 1)
	}
}

// unsettled returns how many records have no result yet, and of these how many may be in the
// stream because an attempt had no answer. For the error of a Close that ran out of time.
func (c *core) unsettled() (records, unknown int) {
	for e := c.ages.oldest; e != nil; e = e.newer {
		records++
		if u := &e.lane.unit; u.entry == e && u.unknown > 0 {
			unknown++
		}
	}
	return records, unknown
}

// age returns how long the oldest record without a result has been waiting.
func (c *core) age(now time.Time) time.Duration {
	if c.ages.oldest == nil {
		return 0
	}
	return now.Sub(c.ages.oldest.taken)
}
