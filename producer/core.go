package producer

import (
	"container/heap"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/runnel-stream/runnel"
)

// limits is what the core goes by; see Config.
type limits struct {
	calls, records, bytes int
	linger, giveUp        time.Duration
	retryMin, retryMax    time.Duration
}

// core is the producer's decisions: which records go into the next call, and what the outcome
// of a call means for each. It does no I/O, knows no goroutine and no clock: what happens is
// told to it (put, tick, launch, land, abandon), and what follows is data (calls to make,
// results to report, the time to come back). It is not safe for concurrent use.
type core struct {
	stream string // for errors
	limits limits
	random *rand.Rand

	lanes map[laneKey]*lane // those that are not idle
	ready readyLanes
	held  laneHeap // by due
	ages  ages
	gate  outage

	taken  uint64 // records so far, the number of the last one
	calls  int    // in flight
	flying int    // records in flight

	sweepAt time.Time // when records may be overdue next; zero: none will be

	// settled is what is to be reported, in order. The shell takes it away.
	settled []settled
	flushes []flush
	counts  counts
}

// call is one PutRecords call. The records are fixed when it is made.
type call struct {
	lanes   []*lane
	entries []*entry // entries[i] is the unit of lanes[i]
	bytes   int
	probe   bool
}

// settled is a record's result, or, with flushed, the mark behind the last result that a flush
// waits for.
type settled struct {
	entry   *entry
	result  Result
	flushed chan<- struct{}
}

// flush waits for the results of the records up to and including one.
type flush struct {
	through uint64
	done    chan<- struct{}
}

// counts is the part of Stats that only grows.
type counts struct {
	delivered, undelivered, calls, retried, throttled, unknown uint64
}

func newCore(stream string, l limits, random *rand.Rand) *core {
	return &core{
		stream: stream, limits: l, random: random, lanes: map[laneKey]*lane{},
		ready: readyLanes{back: laneHeap{before: byPlace}}, held: laneHeap{before: byDue},
	}
}

// put takes a record. It reports whether launch may now have something to do that it did not
// have before.
func (c *core) put(now time.Time, e *entry) bool {
	c.taken++
	e.number, e.taken = c.taken, now
	c.ages.push(e)
	key := laneKey{e.record.PartitionKey, e.record.ExplicitHashKey}
	l := c.lanes[key]
	if l == nil {
		l = &lane{key: key}
		c.lanes[key] = l
	}
	e.lane = l
	l.push(e)
	wakes := false
	if c.limits.giveUp > 0 && c.sweepAt.IsZero() {
		c.sweepAt, wakes = now.Add(c.limits.giveUp), true
	}
	if l.state != idle {
		return wakes
	}
	c.ready.push(l, true)
	return wakes || (c.calls < c.limits.calls && (c.ready.count == 1 || !c.lingers(now)))
}

// hold keeps a lane back until its unit, which has failed, may be sent again, unless it is
// given up.
func (c *core) hold(now time.Time, l *lane, cut bool) {
	if c.overdue(now, l.unit.entry) {
		c.next(now, l)
		return
	}
	l.unit.setbacks++
	wait := backoff(l.unit.setbacks, c.limits.retryMin, c.limits.retryMax, c.random)
	l.state, l.due, l.cut = held, now.Add(wait), cut
	heap.Push(&c.held, l)
}

// next decides about a lane that was just popped, released or landed: on to the ready
// lanes, or out of the map if nothing is left of it.
func (c *core) next(now time.Time, l *lane) {
	c.giveUpOverdue(now, l)
	if l.empty() {
		l.state = idle
		delete(c.lanes, l.key)
		return
	}
	c.ready.push(l, false)
}

// tick gives up what is too old and makes ready what is due.
func (c *core) tick(now time.Time) {
	c.sweep(now)
	for c.held.Len() > 0 && !now.Before(c.held.lanes[0].due) {
		c.next(now, heap.Pop(&c.held).(*lane))
	}
}

// launch returns the next call to make, or nil if there is none to make now.
func (c *core) launch(now time.Time) *call {
	if c.calls >= c.limits.calls || !c.gate.open(now) || c.lingers(now) {
		return nil
	}
	made := &call{probe: c.gate.active()}
	records, bytes := c.limits.records, c.limits.bytes
	if made.probe {
		records = 1
	}
	expect := min(records, c.ready.count)
	made.lanes, made.entries = make([]*lane, 0, expect), make([]*entry, 0, expect)
	for c.ready.count > 0 {
		l := c.ready.peek()
		if l.empty() { // what it held was given up
			c.next(now, c.ready.pop())
			continue
		}
		size := l.head().size()
		doubt := min(l.unit.suspicion, 16)
		records = min(records, max(c.limits.records>>doubt, 1))
		bytes = min(bytes, c.limits.bytes>>doubt)
		if n := len(made.lanes); n >= records || (n > 0 && made.bytes+size > bytes) {
			break
		}
		c.ready.pop()
		made.lanes = append(made.lanes, l)
		made.entries = append(made.entries, l.launch())
		made.bytes += size
		if l.unit.attempts > 1 {
			c.counts.retried++
		}
	}
	if len(made.lanes) == 0 {
		return nil
	}
	c.calls++
	c.counts.calls++
	c.flying += len(made.lanes)
	c.gate.probing = c.gate.probing || made.probe
	return made
}

// lingers reports whether a call that could be made is to wait for more records.
func (c *core) lingers(now time.Time) bool {
	return c.limits.linger > 0 && len(c.flushes) == 0 && c.ready.count > 0 &&
		c.ready.count < c.limits.records && c.ready.bytes < c.limits.bytes &&
		now.Before(c.ready.peek().since.Add(c.limits.linger))
}

// land takes the outcome of a call.
func (c *core) land(now time.Time, landed *call, o outcome) {
	c.calls--
	c.flying -= len(landed.lanes)
	if landed.probe {
		c.gate.probing = false
	}
	if o.answered() {
		c.endOutage(now)
	} else {
		c.noAnswer(now, landed)
	}
	for i, l := range landed.lanes {
		c.landUnit(now, l, o.of(i), o.each == nil, len(landed.lanes) == 1)
	}
}

// landUnit takes what a call did to the unit of a lane: whole tells that all of the call's
// records fared alike, alone that it was the only one.
func (c *core) landUnit(now time.Time, l *lane, v verdict, whole, alone bool) {
	u := &l.unit
	u.cause = v.err
	switch v.fate {
	case stored:
		c.settle(u.entry, Result{
			ShardID: v.shard, Position: runnel.Position{Sequence: v.sequence},
			Attempts: u.attempts, Unknown: u.unknown,
		})
		l.land()
		c.next(now, l)
	case refused:
		c.settleUnit(l, ErrRefused)
		c.next(now, l)
	case suspect: // sent again at once, in ever smaller company, until the one at fault is alone
		if alone {
			c.settleUnit(l, ErrRefused)
			c.next(now, l)
			return
		}
		u.suspicion++
		c.next(now, l)
	case throttled:
		c.counts.throttled++
		c.hold(now, l, false)
	case unknown:
		c.counts.unknown++
		u.unknown++
		if whole {
			u.suspicion++
		}
		c.hold(now, l, whole)
	case failed, notSent:
		c.hold(now, l, whole)
	}
}

// noAnswer counts a call that had none.
func (c *core) noAnswer(now time.Time, landed *call) {
	g := &c.gate
	g.unanswered++
	switch {
	case g.unanswered == outageAfter:
		g.began, g.failures = now, 0
	case landed.probe:
		g.failures++
	default:
		return
	}
	wait := backoff(g.failures+1, c.limits.retryMin, min(c.limits.retryMax, probeEvery), c.random)
	g.next = now.Add(wait)
}

// endOutage takes an answer of any kind for the end of an outage: what waits because calls
// failed as a whole is ready at once.
func (c *core) endOutage(now time.Time) {
	over := c.gate.active()
	c.gate.unanswered = 0
	if !over {
		return
	}
	var released []*lane
	c.held.lanes = slices.DeleteFunc(c.held.lanes, func(l *lane) bool {
		if l.cut {
			released = append(released, l)
		}
		return l.cut
	})
	heap.Init(&c.held)
	for _, l := range released {
		l.unit.setbacks = 0
		c.next(now, l)
	}
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
	if c.ready.count > 0 && c.calls < c.limits.calls {
		switch {
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
