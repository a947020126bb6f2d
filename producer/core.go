package producer

import (
	"container/heap"
	"math/rand/v2"
	"time"

	"github.com/runnel-stream/runnel/internal/retry"
)

// limits is the part of a Config that the core needs.
type limits struct {
	order Order

	calls, records, bytes int
	linger, giveUp        time.Duration
	retryMin, retryMax    time.Duration

	unit    int           // most bytes of a unit and its key, if it has more than one record
	window  uint64        // how far a unit number may exceed the lowest unsettled one of its group
	horizon time.Duration // H: how long after its first attempt a unit may be sent again
	reads   bool          // the Reader can look units up; false in the orders without units
	journal bool          // units are stored in a Journal before they are sent
}

// backoff returns the back-off between attempts, with waits of at most `most`.
func (l *limits) backoff(most time.Duration, random *rand.Rand) retry.Backoff {
	return retry.Backoff{Min: l.retryMin, Max: most, Random: random}
}

// core makes the producer's decisions: it chooses the records of the next call, and draws the
// conclusions from the outcome of a call. It is a state machine without I/O, goroutine and clock.
// Its inputs are calls of its methods with the present time: put for a new record, tick for the
// time that has passed, launch to get the next call, land for the outcome of a call, and so on. Its
// outputs are data: calls to make, results to report, and the time of the next tick. It is not safe
// for concurrent use.
type core struct {
	limits  limits
	random  *rand.Rand
	packing packing
	ledger  ledger

	lanes    map[laneKey]*lane // all lanes that are not idle
	ready    readyLanes
	held     laneHeap // by due: lanes with a failed unit that waits for its next attempt
	toLookUp []*lane
	gate     outage
	shards   shards
	groups   grouping
	lookups  lookups
	dates    streamTime
	marks    marks
	began    time.Time // the start of the run
	chain    chain     // nil except in OrderChained
	chart    chart

	halted     error // the refusal of the caller that has halted the core; nil: not halted
	calls      int   // calls in flight
	flying     int   // records in flight
	sharedWait sharedWait

	sweepAt time.Time // when the next record may be overdue; zero: never
	sweeps  uint64
}

func newCore(stream string, l limits, random *rand.Rand) *core {
	c := &core{
		limits: l, random: random, lanes: map[laneKey]*lane{}, marks: marks{},
		ledger: ledger{stream: stream, journal: l.journal},
		ready:  readyLanes{back: laneHeap{before: byPlace}}, held: laneHeap{before: byDue},
		groups: newGrouping(l.window),
		chart:  chart{waiting: lane{queue: true, state: unmapped}},
	}
	c.setOrder()
	return c
}

// seek returns the lane for an examined record, or nil if it does not exist yet, and sets the
// record's group. If known is false, seek needs the record's hash key: the caller computes it
// outside the mutex (makeHash) and calls seek again.
func (c *core) seek(e *entry) (l *lane, known bool) {
	l = c.packing.find(e)
	if e.hashed {
		e.group = uint8(groupOf(e.hash))
	}
	return l, e.hashed
}

// put adds a record to the lane that seek has returned. It reports whether the caller should call
// launch, because there may now be a call to make.
func (c *core) put(now time.Time, e *entry, l *lane) bool {
	if l == nil {
		l = c.packing.enter(e)
	}
	c.ledger.admit(now, e, l)
	l.push(e)
	wakes := c.expectOverdue(now)
	switch {
	case l.queue:
		return c.ready.requeue(l) && c.calls < c.limits.calls && !c.lingers(now) || wakes
	case l.state != idle:
		return wakes
	}
	c.ready.push(l, true)
	return wakes || (c.calls < c.limits.calls && (c.ready.count == 1 || !c.lingers(now)))
}

// hold keeps a lane back until its failed unit may be sent again, unless the unit is overdue and
// given up. cut means that the whole call failed.
func (c *core) hold(now time.Time, l *lane, cut bool) {
	if c.giveUpOverdue(now, l); l.unit.first == nil {
		c.next(now, l)
		return
	}
	l.unit.setbacks++
	if c.sharedWait.setbacks != l.unit.setbacks {
		wait := c.limits.backoff(c.limits.retryMax, c.random).After(l.unit.setbacks)
		c.sharedWait = sharedWait{setbacks: l.unit.setbacks, wait: wait}
	}
	c.holdUntil(l, now.Add(c.sharedWait.wait), cut)
}

// sharedWait is the last wait that was drawn for a failed unit. Units of one parcel that fail
// together share it, so that they are ready together again and can share a Kinesis record.
type sharedWait struct {
	setbacks int
	wait     time.Duration
}

// holdUntil keeps a lane back until a moment.
func (c *core) holdUntil(l *lane, due time.Time, cut bool) {
	l.state, l.due, l.cut = held, due, cut
	heap.Push(&c.held, l)
}

// next gives up the lane's overdue records. Then it makes the lane ready, or removes it from the
// map if it is empty. It is called for a lane that is in no queue and has no call in flight.
func (c *core) next(now time.Time, l *lane) {
	c.giveUpOverdue(now, l)
	if l.empty() {
		l.state = idle
		delete(c.lanes, l.key)
		return
	}
	c.ready.push(l, false)
}

// nextAll calls next for several lanes, in their order.
func (c *core) nextAll(now time.Time, lanes []*lane) {
	for _, l := range lanes {
		c.next(now, l)
	}
}

// tick gives up overdue records and makes lanes ready at the end of their wait.
func (c *core) tick(now time.Time) {
	c.sweep(now)
	for c.held.Len() > 0 && !now.Before(c.held.lanes[0].due) {
		l := heap.Pop(&c.held).(*lane)
		if l.unit.lookUpDue {
			l.state = toLookUp
			c.toLookUp = append(c.toLookUp, l)
			continue
		}
		c.next(now, l)
	}
	c.unblock(now)
	c.nextAll(now, c.shards.unpark(now, c.cost))
}

// wake returns the time at which tick and launch must be called even if nothing happens before. It
// is called after them.
func (c *core) wake() (at time.Time, ok bool) {
	consider := func(t time.Time) {
		if !ok || t.Before(at) {
			at, ok = t, true
		}
	}
	if c.held.Len() > 0 {
		consider(c.held.lanes[0].due)
	}
	if c.unblocks() {
		consider(time.Time{}) // at once
	}
	if at, due := c.lookups.wake(len(c.toLookUp)); due {
		consider(at)
	}
	if at, due := c.shards.wake(); due {
		consider(at)
	}
	if c.chart.wanted() {
		consider(c.chart.next)
	}
	if c.ready.count > 0 && c.calls < c.limits.calls && c.packing.charted() {
		switch {
		case c.dates.wanted:
			if at, due := c.dates.wake(&c.gate); due && !c.chart.running {
				consider(at)
			}
		case c.gate.active():
			if !c.gate.probing {
				consider(c.gate.next)
			}
		case c.limits.linger > 0:
			consider(c.ready.peek().since.Add(c.limits.linger))
		}
	}
	if !c.sweepAt.IsZero() {
		consider(c.sweepAt)
	}
	return at, ok
}
