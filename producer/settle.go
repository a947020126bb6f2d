package producer

import (
	"container/heap"
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

// refuse takes that the stream has refused the caller of a unit. Where the journal keeps the unit
// it stays open, and the producer halts: a later run sends it, and no record is skipped.
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
	u, told := &l.unit, len(c.told)
	var err error
	for e := u.first; e != nil; {
		next := e.next
		result := c.undelivered(e, e.tried+u.attempts, u.unknown, u.cause, reason)
		c.settle(e, result)
		err, e = result.Err, next
	}
	if c.end(l, Undelivered); len(c.told) > told {
		c.told[told].Err = err
	}
}

func (c *core) undelivered(e *entry, attempts, unknown int, cause, reason error) Result {
	if reason == ErrHalted { //nolint:errorlint // it is one of the reasons, as it is
		cause = c.halted
	}
	return Result{Attempts: attempts, Unknown: unknown, Err: &UndeliveredError{
		Stream: c.stream, PartitionKey: e.record.PartitionKey, Reason: reason,
		Attempts: attempts, Unknown: unknown, Cause: cause,
	}}
}

// settleHead ends the first record of a lane's queue, which was not sent, or not as what it
// may be sent as next.
func (c *core) settleHead(l *lane, cause, reason error) {
	e := l.pop()
	c.settleAlone(e, c.undelivered(e, e.tried, 0, cause, reason))
}

// settleAlone ends a record that is in no unit and is not delivered. The journal hears of it, so
// that no later run puts it behind newer ones of its lane.
func (c *core) settleAlone(e *entry, result Result) {
	c.settle(e, result)
	if c.limits.journal {
		c.told = append(c.told, SettledUnit{
			Fate: Undelivered, Marks: []uint64{e.mark}, Err: result.Err,
		})
	}
}

// overdue reports whether a record is without an acknowledgement for too long.
func (c *core) overdue(now time.Time, e *entry) bool {
	return c.limits.giveUp > 0 && now.Sub(e.taken) >= c.limits.giveUp
}

// giveUpOverdue gives up the records at the head of a lane that are overdue. The lane is not
// flying.
//
// A unit of which an attempt is unknown is in the stream as a whole or not at all, so it is
// given up when the youngest of it is overdue. It may then still be stored, late: its number
// is below the next one of its lane and below every later Low, so no filter delivers it behind
// those. What surely is not in the stream is given up record by record.
func (c *core) giveUpOverdue(now time.Time, l *lane) {
	if c.limits.giveUp <= 0 {
		return
	}
	cause := l.unit.cause
	for u := &l.unit; u.first != nil && c.overdue(now, u.first); {
		switch {
		case c.overdue(now, u.last):
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
	for l.first != nil && c.overdue(now, l.first) {
		if l.first.tried == 0 {
			cause = nil
		}
		c.settleHead(l, cause, ErrGivenUp)
	}
}

// sweep gives up what is overdue in all lanes but those that are flying or being looked up:
// there it is done when they land, so that the results of a lane come in its order. A lane
// that is emptied by it stays where it is until its turn comes, unless it is held.
//
// Records stand in ages in the order of their deadlines. What is overdue in flying lanes may
// be a long backlog, which is why the next sweep is not made at every event, but at the next
// deadline and not before a 32nd of the time has gone by.
func (c *core) sweep(now time.Time) {
	if c.sweepAt.IsZero() || now.Before(c.sweepAt) {
		return
	}
	c.sweepAt = time.Time{}
	c.sweeps++
	var due []*lane
	for e := c.ages.oldest; e != nil; e = e.newer {
		if !c.overdue(now, e) {
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

// abandon ends everything, for the reason given. No call is in flight any more, and none will be
// made.
func (c *core) abandon(reason error) {
	told := len(c.told)
	for e := c.ages.oldest; e != nil; e = c.ages.oldest {
		if l := e.lane; l.unit.first != nil {
			c.settleUnit(l, reason)
		} else {
			c.settleHead(l, nil, reason)
		}
	}
	// What is left open stays open in the journal: the next run sends it again.
	c.told = c.told[:told]
	c.lanes = map[laneKey]*lane{}
	c.ready = readyLanes{back: laneHeap{before: byPlace}}
	c.held = laneHeap{before: byDue}
	c.groups.clear()
	c.doubted, c.shards = nil, shards{}
	c.chart.waiting = lane{queue: true, state: unmapped}
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
		u := &e.lane.unit
		sent := u.unknown > 0 && u.first.number <= e.number && e.number <= u.last.number
		if sent || e.resumed && e.tried == 0 {
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
