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

	unit    int           // bytes of a unit with its key, if it has more than one record
	window  uint64        // how far a number may be above the lowest unsettled one of its group
	horizon time.Duration // how long a unit may be sent again: H
	reads   bool          // unknown units can be looked up; false in the orders without units
	journal bool          // units are journalled before they are sent
}

// backoff returns the wait between attempts of up to so long.
func (l *limits) backoff(most time.Duration, random *rand.Rand) retry.Backoff {
	return retry.Backoff{Min: l.retryMin, Max: most, Random: random}
}

// core makes the producer's decisions: which records go into the next call, and what the outcome
// of a call means for each. It does no I/O and has no goroutine and no clock. Its input is calls of
// put, tick, launch, land and abandon. Its output is data: calls to make, results to report, the
// time of the next tick. It is not safe for concurrent use.
type core struct {
	limits  limits
	random  *rand.Rand
	packing packing
	ledger  ledger

	lanes   map[laneKey]*lane // those that are not idle
	ready   readyLanes
	held    laneHeap // by due
	doubted []*lane
	gate    outage
	shards  shards
	groups  grouping
	lookups lookups
	dates   streamTime
	marks   marks
	began   time.Time // of the run
	chain   chain     // nil except in OrderChained
	chart   chart

	halted error // the refusal of the caller after which no call is made; nil: none
	calls  int   // in flight
	flying int   // records in flight
	lull   lull

	sweepAt time.Time // when records may be overdue next; zero: never
	sweeps  uint64
}

func newCore(stream string, l limits, random *rand.Rand) *core {
	l.reads = l.reads && l.order.units()
	c := &core{
		limits: l, random: random, lanes: map[laneKey]*lane{}, marks: marks{},
		ledger: ledger{stream: stream, journal: l.journal},
		ready:  readyLanes{back: laneHeap{before: byPlace}}, held: laneHeap{before: byDue},
		groups: newGrouping(l.order == OrderNone, l.window),
		chart:  chart{needed: l.order.byShard(), waiting: lane{queue: true, state: unmapped}},
	}
	if l.order == OrderChained {
		c.chain = chain{}
	}
	c.packing = newPacking(c)
	return c
}

// seek returns the lane that an examined record is to wait in, or nil if there is none, and sets
// the record's group. It returns false if it needs the record's hash key, which the caller then
// makes outside the mutex.
func (c *core) seek(e *entry) (l *lane, known bool) {
	l = c.packing.find(e)
	if e.hashed {
		e.group = uint8(groupOf(e.hash))
	}
	return l, e.hashed
}

// put takes a record, with the lane that seek has returned. It reports whether launch may now have
// something to do that it did not have before.
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

// hold keeps a lane back until its failed unit may be sent again, unless the unit is given up.
func (c *core) hold(now time.Time, l *lane, cut bool) {
	if c.giveUpOverdue(now, l); l.unit.first == nil {
		c.next(now, l)
		return
	}
	l.unit.setbacks++
	if c.lull.setbacks != l.unit.setbacks {
		wait := c.limits.backoff(c.limits.retryMax, c.random).After(l.unit.setbacks)
		c.lull = lull{setbacks: l.unit.setbacks, wait: wait}
	}
	c.holdUntil(l, now.Add(c.lull.wait), cut)
}

// lull is the wait of the units that failed together, so that they are ready together again.
type lull struct {
	setbacks int
	wait     time.Duration
}

func (c *core) holdUntil(l *lane, due time.Time, cut bool) {
	l.state, l.due, l.cut = held, due, cut
	heap.Push(&c.held, l)
}

// next moves a lane that was just popped, released or landed: to the ready lanes, or out of the
// map if it is empty.
func (c *core) next(now time.Time, l *lane) {
	c.giveUpOverdue(now, l)
	if l.empty() {
		l.state = idle
		delete(c.lanes, l.key)
		return
	}
	c.ready.push(l, false)
}

// nextAll is next for several lanes, in their order.
func (c *core) nextAll(now time.Time, lanes []*lane) {
	for _, l := range lanes {
		c.next(now, l)
	}
}

// tick gives up overdue records and makes due lanes ready.
func (c *core) tick(now time.Time) {
	c.sweep(now)
	for c.held.Len() > 0 && !now.Before(c.held.lanes[0].due) {
		l := heap.Pop(&c.held).(*lane)
		if l.unit.doomed {
			l.state = doubted
			c.doubted = append(c.doubted, l)
			continue
		}
		c.next(now, l)
	}
	c.unblock(now)
	c.nextAll(now, c.shards.unpark(now, c.cost))
}

// wake returns when tick and launch are to be called again if nothing happens before then. It
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
	if at, due := c.lookups.wake(len(c.doubted)); due {
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
