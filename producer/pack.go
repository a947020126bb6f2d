package producer

import "time"

// outerKey is the partition key of Kinesis records that hold records of many keys, as the KPL
// has it. What decides their shard is their explicit hash key.
const outerKey = "a"

// newCarrier returns the lane of a unit of records of many lanes, which begins with first.
func newCarrier(first *entry) *lane {
	key := laneKey{first.record.PartitionKey, first.record.ExplicitHashKey}
	return &lane{key: key.packed(), carrier: true, hash: first.hash, hashed: true}
}

// packed is the keys of a Kinesis record that begins with a record of these.
func (k laneKey) packed() laneKey { return laneKey{outerKey, k.hashKey().String()} }

// requeue puts a queue among the ready lanes, or to its place there. It reports whether the
// queue is there.
func (c *core) requeue(l *lane) bool {
	switch l.state {
	case idle:
		c.ready.push(l, false)
	case ready:
		c.ready.update(l)
	case flying, held, blocked, parked, doubted, searching, unmapped:
		return false
	}
	return true
}

// unpack gives the records of a packed unit back to the queues of the shards that they belong to
// now, but for those that are given up. Records in a queue stand in the order of put.
func (c *core) unpack(now time.Time, u *unit) {
	behind := map[*lane]*entry{} // the last one inserted
	for e := u.first; e != nil; {
		next := e.next
		e.next = nil
		if c.overdue(now, e) {
			c.settleAlone(e, c.undelivered(e, e.tried, 0, u.cause, ErrGivenUp))
		} else {
			l := c.rejoin(e)
			l.insert(behind[l], e)
			e.lane, behind[l] = l, e
		}
		e = next
	}
	for l := range behind {
		c.requeue(l)
	}
}

// insert puts a record into a queue by its number. It belongs behind after, if that is not nil.
func (l *lane) insert(after, e *entry) {
	at := &l.first
	if after != nil {
		at = &after.next
	}
	for *at != nil && (*at).number < e.number {
		at = &(*at).next
	}
	if e.next = *at; e.next == nil {
		l.last = e
	}
	*at = e
	l.backlog += e.wide
}

// landVoid takes that a unit is stored where readers drop it. If no attempt was unknown its
// records go out anew at once. Otherwise a copy of it may stand, or come, where it is valid, as
// in the shard's parent: it is looked up.
//
// Where units share Kinesis records it stays as it is, under its number, and is packed anew: of
// its copies the filter takes the first that is valid.
func (c *core) landVoid(now time.Time, l *lane) {
	switch {
	case c.limits.boxes:
	case l.unit.unknown > 0:
		c.expire(now, l)
		return
	default:
		c.unfold(now, l)
	}
	c.next(now, l)
}
