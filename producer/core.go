package producer

import (
	"container/heap"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/aggregate"
)

// limits is what the core goes by; see Config.
type limits struct {
	calls, records, bytes int
	linger, giveUp        time.Duration
	retryMin, retryMax    time.Duration

	units   bool          // fold what waits into units with an identity
	packs   bool          // of many lanes, without an order: OrderNone
	boxes   bool          // many units in a Kinesis record: OrderShard
	unit    int           // bytes of a unit with its key, where it has more than one record
	window  uint64        // how far a number may lie above the lowest of its group not settled
	horizon time.Duration // how long a unit may be sent again: H
	reads   bool          // what is unknown then can be looked up
	journal bool          // units are journalled before they are sent
	chained bool          // PutRecord, each with the number of the one before it
}

// core is the producer's decisions: which records go into the next call, and what the outcome
// of a call means for each. It does no I/O, knows no goroutine and no clock: what happens is
// told to it (put, tick, launch, land, abandon), and what follows is data (calls to make,
// results to report, the time to come back). It is not safe for concurrent use.
type core struct {
	stream string // for errors
	limits limits
	random *rand.Rand

	lanes   map[laneKey]*lane // those that are not idle
	ready   readyLanes
	held    laneHeap // by due
	doubted []*lane
	ages    ages
	gate    outage
	shards  shards
	groups  grouping
	lookups lookups
	dates   streamTime
	marks   marks
	began   time.Time // of the run
	chain   chain
	chart   chart

	encoder aggregate.Encoder
	tags    aggregate.Tags // of the unit that is being folded

	halted error  // the refusal of the caller after which no call is made; nil: none
	taken  uint64 // records so far, the number of the last one
	calls  int    // in flight
	flying int    // records in flight
	lull   lull

	sweepAt time.Time // when records may be overdue next; zero: none will be
	sweeps  uint64

	// settled is what is to be reported, in order. The shell takes it away.
	settled []settled
	flushes []flush
	counts  counts
	// told is what the journal is to be told of, in order. The shell takes it away.
	told []SettledUnit
}

// call is one call of the API. What it carries is fixed when it is made: the units of the
// lanes, which stay as they are until it has landed.
type call struct {
	lanes   []*lane
	counts  []int  // of user records in each unit
	boxes   []*box // what it carries in OrderShard; the lanes stand box by box
	records int    // their sum
	bytes   int
	probe   bool
	until   time.Time             // it is not to be sent later; zero: whenever
	fresh   []*lane               // those whose units the journal has not kept yet
	after   runnel.SequenceNumber // SequenceNumberForOrdering, if it is one PutRecord
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

	units, lookedUp, found, renewed, void, withheld uint64
}

func newCore(stream string, l limits, random *rand.Rand) *core {
	return &core{
		stream: stream, limits: l, random: random, lanes: map[laneKey]*lane{}, marks: marks{},
		ready: readyLanes{back: laneHeap{before: byPlace}}, held: laneHeap{before: byDue},
		groups: newGrouping(l.packs), chart: chart{waiting: lane{queue: true, state: unmapped}},
	}
}

// put takes a record, with the lane that seek has returned. It reports whether launch may now have
// something to do that it did not have before.
func (c *core) put(now time.Time, e *entry, l *lane) bool {
	if l == nil {
		l = c.enter(e)
	}
	c.admit(now, e, l)
	l.push(e)
	wakes := false
	if c.limits.giveUp > 0 && c.sweepAt.IsZero() {
		c.sweepAt, wakes = now.Add(c.limits.giveUp), true
	}
	switch {
	case l.queue:
		return c.requeue(l) && c.calls < c.limits.calls && !c.lingers(now) || wakes
	case l.state != idle:
		return wakes
	}
	c.ready.push(l, true)
	return wakes || (c.calls < c.limits.calls && (c.ready.count == 1 || !c.lingers(now)))
}

// examine notes about a record what needs no lane. It reads nothing that changes.
func (l *limits) examine(e *entry) {
	e.aggregated = e.aggregated || l.units && aggregate.IsAggregate(e.record.Data)
	if l.packs {
		e.hash, e.hashed = e.key().hashKey(), true
	}
}

// seek returns the lane that an examined record is to wait in, or nil if it is not there yet, and
// notes the record's group. An MD5 for each record would cost more than the lane's, so a record
// whose lane is there takes the lane's hash key.
func (c *core) seek(e *entry) *lane {
	var l *lane
	switch {
	case c.limits.packs && e.aggregated: // it goes as it is, in a lane of its own
	case c.limits.packs:
		l = c.queueOf(e.hash)
	default:
		if l = c.lanes[e.key()]; l != nil {
			e.hash, e.hashed = l.hashKey(), true
		}
	}
	if !e.hashed {
		e.hash, e.hashed = e.key().hashKey(), true
	}
	e.group = uint8(groupOf(e.hash))
	return l
}

// enter makes the lane of a record for which seek has found none.
func (c *core) enter(e *entry) *lane {
	if c.limits.packs && !e.aggregated {
		return c.newQueue(e.hash)
	}
	l := &lane{key: e.key(), hash: e.hash, hashed: true}
	if !c.limits.packs {
		c.lanes[l.key] = l
	}
	return l
}

// admit numbers and measures a record of a lane.
func (c *core) admit(now time.Time, e *entry, l *lane) {
	c.taken++
	e.number, e.taken = c.taken, now
	c.ages.push(e)
	e.lane, e.wide = l, e.size()
	if c.limits.units && !e.aggregated {
		r := &e.record
		e.wide = wrappedSize(c.limits.byShard(), r.PartitionKey, r.ExplicitHashKey, r.Data)
	}
}

// hold keeps a lane back until its unit, which has failed, may be sent again, unless it is
// given up.
func (c *core) hold(now time.Time, l *lane, cut bool) {
	if c.giveUpOverdue(now, l); l.unit.first == nil {
		c.next(now, l)
		return
	}
	l.unit.setbacks++
	if c.lull.setbacks != l.unit.setbacks {
		wait := backoff(l.unit.setbacks, c.limits.retryMin, c.limits.retryMax, c.random)
		c.lull = lull{setbacks: l.unit.setbacks, wait: wait}
	}
	c.holdUntil(l, now.Add(c.lull.wait), cut)
}

func (c *core) holdUntil(l *lane, due time.Time, cut bool) {
	l.state, l.due, l.cut = held, due, cut
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
		l := heap.Pop(&c.held).(*lane)
		if l.unit.doomed {
			l.state = doubted
			c.doubted = append(c.doubted, l)
			continue
		}
		c.next(now, l)
	}
	c.unblock(now)
	c.unpark(now)
}

// launch returns the next call to make, or nil if there is none to make now.
func (c *core) launch(now time.Time) *call {
	if c.dates.wanted = c.stale(now) && c.skim(now); c.dates.wanted {
		return nil
	}
	if c.ready.count > 0 && c.mistrusts(now) {
		return nil
	}
	if c.calls >= c.limits.calls || !c.gate.open(now) || c.lingers(now) {
		return nil
	}
	if c.uncharted() {
		c.skim(now)
		return nil
	}
	if c.limits.boxes {
		return c.begin(c.launchBoxes(now))
	}
	made := &call{probe: c.gate.active()}
	records, bytes := c.limits.records, c.limits.bytes
	if made.probe {
		records = 1
	}
	made.lanes = make([]*lane, 0, min(records, c.ready.count))
	for c.ready.count > 0 {
		l := c.ready.peek()
		if c.divert(now, l) {
			continue
		}
		size := l.size()
		doubt := min(l.unit.suspicion, 16)
		records = min(records, max(c.limits.records>>doubt, 1))
		bytes = min(bytes, c.limits.bytes>>doubt)
		if n := len(made.lanes); n >= records || (n > 0 && made.bytes+size > bytes) {
			break
		}
		c.ready.pop()
		if l.unit.first == nil {
			l = c.fold(now, l, min(c.limits.unit, bytes-made.bytes))
		}
		c.board(now, made, l)
	}
	return c.begin(made)
}

// skim takes out the foremost ready lanes of which all was given up, and reports whether any other
// is ready.
func (c *core) skim(now time.Time) bool {
	for c.ready.count > 0 && c.ready.peek().empty() {
		c.next(now, c.ready.pop())
	}
	return c.ready.count > 0
}

// begin counts a call that is made, if it carries anything.
func (c *core) begin(made *call) *call {
	if len(made.lanes) == 0 {
		return nil
	}
	c.calls++
	c.counts.calls++
	c.flying += made.records
	c.gate.probing = c.gate.probing || made.probe
	return made
}

// board puts the unit of a lane into a call.
func (c *core) board(now time.Time, made *call, l *lane) {
	u := &l.unit
	if u.firstSent.IsZero() {
		c.stamp(now, u)
	}
	l.launch()
	c.charge(l)
	made.after = c.chain[l.key]
	made.lanes = append(made.lanes, l)
	made.counts = append(made.counts, u.count)
	made.records += u.count
	made.bytes += l.size()
	if u.attempts > 1 {
		c.counts.retried += uint64(u.count)
	}
	if !u.wrapped() {
		return
	}
	if until := u.firstSent.Add(c.limits.horizon); made.until.IsZero() || until.Before(made.until) {
		made.until = until
	}
	if c.limits.journal && !u.kept {
		u.journalled = true
		made.fresh = append(made.fresh, l)
	}
}

// divert takes the foremost ready lane to where it has to wait, if its head cannot be sent now.
func (c *core) divert(now time.Time, l *lane) bool {
	switch {
	case l.empty(): // what it held was given up
		c.next(now, c.ready.pop())
	case l.unit.undated:
		c.dateUnit(now, &l.unit)
	case l.unit.wrapped() && now.Sub(l.unit.firstSent) > c.limits.horizon:
		c.expire(now, c.ready.pop())
	case l.unit.first == nil && c.wraps(l.first) && c.numbersFor(l) == nil:
		c.block(c.ready.pop())
	default:
		return c.park(now, l)
	}
	return true
}

// lingers reports whether a call that could be made is to wait for more records.
func (c *core) lingers(now time.Time) bool {
	return c.limits.linger > 0 && len(c.flushes) == 0 && c.ready.count > 0 &&
		(c.ready.count < c.limits.records || c.limits.boxes) && c.ready.bytes < c.limits.bytes &&
		now.Before(c.ready.peek().since.Add(c.limits.linger))
}

// land takes the outcome of a call.
func (c *core) land(now time.Time, landed *call, o outcome) {
	c.calls--
	c.flying -= landed.records
	if landed.probe {
		c.gate.probing = false
	}
	if o.missing() {
		c.distrust()
	} else if o.answered() {
		c.chart.sure = now
	}
	switch {
	case o.each == nil && o.all.fate == withheld:
		c.counts.calls--
		c.counts.withheld++
	case o.answered():
		c.endOutage(now)
		c.note(now, o)
	default:
		c.noAnswer(now, landed)
	}
	if landed.boxes != nil {
		c.landBoxes(now, landed, o)
		return
	}
	for i, l := range landed.lanes {
		c.lull = lull{}
		c.landUnit(now, l, o.of(i), o.each == nil, len(landed.lanes) == 1)
	}
}

// landUnit takes what a call did to the unit of a lane: whole tells that all of the call's
// units fared alike, alone that it was the only one.
func (c *core) landUnit(now time.Time, l *lane, v verdict, whole, alone bool) {
	u := &l.unit
	if v.fate == stored && c.limits.packs && u.wrapped() {
		v = c.judgeUnit(u, v)
	}
	u.cause, u.lastSent = v.err, now
	if v.fate != stored {
		c.trouble(l)
	} else if u.attempts == 1 {
		c.clean(l)
	}
	switch v.fate {
	case stored:
		c.acknowledge(now, l, v)
	case void:
		c.counts.void++
		c.landVoid(now, l)
	case refused:
		c.refuse(now, l)
	case suspect: // sent again at once, in ever smaller company, until the one at fault is alone
		if alone {
			c.suspectAlone(now, l)
			return
		}
		u.suspicion++
		c.next(now, l)
	case throttled:
		c.counts.throttled += uint64(u.count)
		c.slow(now, l, v)
		c.hold(now, l, false)
	case unknown:
		c.counts.unknown += uint64(u.count)
		u.unknown++
		if whole {
			u.suspicion++
		}
		c.hold(now, l, whole)
	case withheld:
		u.attempts--
		c.hold(now, l, false)
	case failed, notSent:
		c.hold(now, l, whole)
	}
}

// acknowledge settles a unit that is stored.
func (c *core) acknowledge(now time.Time, l *lane, v verdict) {
	c.learn(now, l, v.shard)
	c.link(l, v.sequence)
	u := &l.unit
	for i, e := 0, u.first; e != nil; i++ {
		next := e.next
		c.settle(e, u.result(v, e, i))
		e = next
	}
	c.end(l, Stored)
	c.next(now, l)
}

// suspectAlone takes that the stream found a fault in a call that carried nothing but the
// lane's unit.
func (c *core) suspectAlone(now time.Time, l *lane) {
	u := &l.unit
	switch {
	case c.unchain(l): // perhaps it was the number of the one before it
	case u.count > 1 && u.unknown == 0 && u.wrapped():
		for e := u.first; e != nil; e = e.next {
			e.alone = true
		}
		c.unfold(now, l)
	default:
		c.settleUnit(l, ErrRefused)
	}
	c.next(now, l)
}

// noAnswer counts a call that had none.
func (c *core) noAnswer(now time.Time, landed *call) {
	g := &c.gate
	g.unanswered++
	switch {
	case g.unanswered == outageAfter:
		g.began, g.failures = now, 0
		c.distrust()
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
	for i, l := range c.held.lanes {
		l.index = i
	}
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
	if c.unblocks() {
		consider(time.Time{}) // at once
	}
	if at, due := c.lookups.wake(len(c.doubted)); due {
		consider(at)
	}
	if at, due := c.shards.wake(); due {
		consider(at)
	}
	if c.limits.byShard() && c.chart.wanted() {
		consider(c.chart.next)
	}
	if c.ready.count > 0 && c.calls < c.limits.calls && !c.uncharted() {
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
