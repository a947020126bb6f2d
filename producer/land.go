package producer

import (
	"container/heap"
	"slices"
	"time"
)

// land takes the outcome of a call and passes each unit its verdict.
func (c *core) land(now time.Time, landed *call, o outcome) {
	c.calls--
	c.flying -= landed.records
	if landed.probe {
		c.gate.probing = false
	}
	if o.missing() {
		c.forgetShards()
	} else if o.answered() {
		c.chart.confirmed = now
	}
	switch {
	case o.each == nil && o.all.fate == withheld:
		c.ledger.counts.calls--
		c.ledger.counts.withheld++
	case o.answered():
		c.endOutage(now)
		if c.limits.reads {
			c.marks.note(now, o, c.limits.horizon)
		}
	default:
		c.noAnswer(now, landed)
	}
	for i := range landed.parcels {
		p, v := &landed.parcels[i], o.of(i)
		if v.fate == stored && p.lanes[0].unit.wrapped() {
			v = c.packing.judge(p, v)
		}
		c.sharedWait = sharedWait{}
		for _, l := range p.lanes {
			count := l.unit.count
			c.landUnit(now, l, v, o.each == nil, len(landed.lanes) == 1)
			v.sub += count
		}
	}
}

// landUnit takes the verdict on the unit of a lane. whole means that the call had one outcome for
// all units, alone that it carried only this unit.
func (c *core) landUnit(now time.Time, l *lane, v verdict, whole, alone bool) {
	u := &l.unit
	u.cause, u.lastSent = v.err, now
	if v.fate != stored {
		c.groups.trouble(c.groupsOf(l))
	} else if u.attempts == 1 {
		c.groups.clean(c.groupsOf(l))
	}
	switch v.fate {
	case stored:
		c.acknowledge(now, l, v)
	case void:
		c.ledger.counts.void++
		c.landVoid(now, l)
	case refused:
		c.refuse(now, l)
	case suspect: // sent again at once in smaller and smaller calls, until the invalid one is alone
		if alone {
			c.suspectAlone(now, l)
			return
		}
		u.suspicion++
		c.next(now, l)
	case throttled:
		c.ledger.counts.throttled += uint64(u.count)
		c.slow(now, l, v)
		c.hold(now, l, false)
	case unknown:
		c.ledger.counts.unknown += uint64(u.count)
		u.unknown++
		if whole {
			u.suspicion++
		}
		c.hold(now, l, whole)
	case withheld:
		u.attempts--
		if u.refusal != nil {
			u.cause = u.refusal
			c.settleUnit(l, ErrRefused)
			c.next(now, l)
			return
		}
		c.hold(now, l, false)
	case failed, notSent:
		c.hold(now, l, whole)
	}
}

// acknowledge settles a stored unit.
func (c *core) acknowledge(now time.Time, l *lane, v verdict) {
	c.learn(now, l, v.shard)
	c.chain.link(l.key, v.sequence)
	u := &l.unit
	for i, e := 0, u.first; e != nil; i++ {
		next := e.next
		c.ledger.settle(e, u.result(v, e, i))
		e = next
	}
	c.end(l, OutcomeStored, nil)
	c.next(now, l)
}

// landVoid handles a unit that is stored where readers drop it. An ordered unit is sent again under
// its number in another Kinesis record; a filter takes the first valid copy. The records of an
// unordered unit go into new units at once. But if one of its attempts is unknown, a valid copy may
// be in the stream (for example in the shard's parent) or may still arrive, so the unit is looked
// up first.
func (c *core) landVoid(now time.Time, l *lane) {
	switch {
	case !l.unit.id.Unordered:
	case l.unit.unknown > 0:
		c.expire(now, l)
		return
	default:
		c.unfold(now, l)
	}
	c.next(now, l)
}

// suspectAlone handles an invalid call that carried only the lane's unit. It first tries without
// SequenceNumberForOrdering, then with each record in a unit of its own, and then refuses the
// record.
func (c *core) suspectAlone(now time.Time, l *lane) {
	u := &l.unit
	switch {
	case c.chain.unlink(l.key): // the previous record's number may have been invalid
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

// noAnswer counts a call without an answer, and sets the time of the next probe in an outage.
func (c *core) noAnswer(now time.Time, landed *call) {
	g := &c.gate
	g.unanswered++
	switch {
	case g.unanswered == outageAfter:
		g.began, g.failures = now, 0
		c.forgetShards()
	case landed.probe:
		g.failures++
	default:
		return
	}
	most := min(c.limits.retryMax, probeEvery)
	g.next = now.Add(c.limits.backoff(most, c.random).After(g.failures + 1))
}

// endOutage ends an outage after an answer of any kind. The lanes that were held because calls
// failed as a whole become ready at once.
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
