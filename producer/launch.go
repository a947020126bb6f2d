package producer

import "time"

// launch returns the next call, or nil if no call can be made now.
func (c *core) launch(now time.Time) *call {
	if c.dates.wanted = c.stale(now) && c.dropEmpty(now); c.dates.wanted {
		return nil
	}
	if c.ready.count > 0 && c.forgetOldShards(now) {
		return nil
	}
	if c.calls >= c.limits.calls || !c.gate.open(now) || c.lingers(now) {
		return nil
	}
	if !c.packing.charted() {
		c.dropEmpty(now)
		return nil
	}
	made := &call{probe: c.gate.active()}
	loader := c.packing.loader(made, c.ready.count)
	for c.ready.count > 0 {
		l := c.ready.peek()
		if c.divert(now, l) {
			continue
		}
		if !loader.takes(l) {
			break
		}
		c.ready.pop()
		if l.unit.first == nil {
			l = c.fold(now, l, loader.room())
		}
		c.addToCall(now, made, l)
		loader.load(l)
	}
	if len(made.lanes) == 0 {
		return nil
	}
	loader.finish()
	c.calls++
	c.ledger.counts.calls++
	c.flying += made.records
	c.gate.probing = c.gate.probing || made.probe
	return made
}

// dropEmpty removes ready lanes without records, left by records that were given up, from the
// front. It reports whether another lane is ready.
func (c *core) dropEmpty(now time.Time) bool {
	for c.ready.count > 0 && c.ready.peek().empty() {
		c.next(now, c.ready.pop())
	}
	return c.ready.count > 0
}

// lingers reports whether a possible call is to wait for more records.
func (c *core) lingers(now time.Time) bool {
	return c.limits.linger > 0 && len(c.ledger.flushes) == 0 && c.ready.count > 0 &&
		c.ready.count < c.packing.mostLanes() && c.ready.bytes < c.limits.bytes &&
		now.Before(c.ready.peek().since.Add(c.limits.linger))
}

// divert handles the first ready lane if its head cannot be sent now, and reports whether it did.
// Except for an undated unit, it moves the lane to the place where it has to wait.
func (c *core) divert(now time.Time, l *lane) bool {
	switch {
	case l.empty(): // its records were given up
		c.next(now, c.ready.pop())
	case l.unit.undated: // of an earlier run
		c.dateUnit(now, &l.unit)
	case l.unit.wrapped() && now.Sub(l.unit.firstSent) > c.limits.horizon:
		c.expire(now, c.ready.pop())
	case l.unit.first == nil && !l.first.asIs && c.numbersFor(l) == nil: // full window
		c.block(c.ready.pop())
	default:
		p := c.shards.full(now, l)
		if p == nil {
			return false
		}
		c.groups.trouble(c.groupsOf(l))
		c.shards.park(p, c.ready.pop())
	}
	return true
}

// fold freezes the front of a lane's queue into a unit of at most `most` bytes with its partition
// key, and of at least one record. A record that goes as it is becomes a unit without a number.
// fold returns the lane that carries the unit: see packing.carrier.
func (c *core) fold(now time.Time, l *lane, most int) *lane {
	carrier := c.packing.carrier(l)
	u := &carrier.unit
	*u = unit{first: l.first, last: l.first, count: 1}
	c.ledger.counts.units++
	if l.first.asIs {
		u.data, u.wireSize = l.first.record.Data, l.first.size()
	} else {
		c.numbersFor(l).next(u)
		c.packing.fill(u, most)
	}
	l.cutQueue(u)
	if carrier != l {
		for e := u.first; e != nil; e = e.next {
			e.lane = carrier
			l.backlog -= e.wireSize
		}
		c.next(now, l)
	}
	return carrier
}

// unfold takes a unit apart and returns its records to the place where they waited, for a new unit.
// No copy of the unit may be in the stream or arrive later where readers take it.
func (c *core) unfold(now time.Time, l *lane) {
	u := &l.unit
	for e := u.first; e != nil; e = e.next {
		e.tried += u.attempts
	}
	if l.carrier {
		c.giveUpInUnit(now, u)
	}
	c.packing.takeBack(l)
	c.end(l, OutcomeRenewed, nil)
}

// end removes the unit from its lane, and settles its number.
func (c *core) end(l *lane, how UnitOutcome, err error) {
	u := &l.unit
	c.groups.settle(u)
	c.ledger.end(u, how, err)
	*u = unit{}
	if len(l.resumed) > 0 {
		l.unit, l.resumed = l.resumed[0], l.resumed[1:]
	}
}

// addToCall adds the unit of a lane to a call and counts it.
func (c *core) addToCall(now time.Time, made *call, l *lane) {
	u := &l.unit
	if u.firstSent.IsZero() {
		c.stamp(now, u)
	}
	l.launch()
	c.shards.charge(l, c.cost(l))
	made.after = c.chain[l.key]
	made.lanes = append(made.lanes, l)
	made.records += u.count
	if u.attempts > 1 {
		c.ledger.counts.retried += uint64(u.count)
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

// cost returns how much of its shard's rate the lane's next unit uses.
func (c *core) cost(l *lane) int { return c.packing.cost(l.size()) }
