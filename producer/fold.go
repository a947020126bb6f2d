package producer

import (
	"time"

	"github.com/runnel-stream/runnel/aggregate"
)

// fold freezes the front of a lane's queue into a unit: what waits, up to so many bytes with
// the partition key, but at least one record. In the orders without units it is one record as
// it is, and so it is where the record is an aggregate already: aggregates do not nest.
//
// It returns the lane that carries the unit: the records' own, or, where records of many lanes
// are packed, one that is made for the unit and goes when the unit has an end.
func (c *core) fold(now time.Time, l *lane, most int) *lane {
	carrier := l
	if l.queue {
		carrier = newCarrier(l.first)
	}
	u := &carrier.unit
	*u = unit{first: l.first, last: l.first, count: 1}
	c.counts.units++
	if c.wraps(l.first) {
		c.freeze(u, carrier, c.numbersFor(l), most)
	} else {
		u.data = l.first.record.Data
		u.wide = len(u.data) + len(carrier.key.partition)
	}
	l.cutQueue(u)
	if carrier != l {
		for e := u.first; e != nil; e = e.next {
			e.lane = carrier
			l.backlog -= e.wide
		}
		c.next(now, l)
	}
	return carrier
}

// freeze gives the unit a number, adds the records that follow its first one as far as they fit,
// and makes the unit's bytes.
func (c *core) freeze(u *unit, l *lane, n *numbers, most int) {
	outer, slack := len(l.key.partition), 0
	if c.limits.boxes {
		outer, slack = len(outerKey), boxed
	}
	record := u.first.inside()
	c.tags = n.next(u).AppendTo(c.tags[:0])
	record.Tags = c.tags
	c.encoder.Reset()
	if c.encoder.Add(record) != nil { // Put has checked what Add checks
		n.settle(u)
		u.id, u.data = aggregate.Unit{}, u.first.record.Data
		u.wide = u.first.size()
		l.key = laneKey{u.first.record.PartitionKey, u.first.record.ExplicitHashKey}
		return
	}
	for e := u.first.next; e != nil && c.joins(u.first, e); e = e.next {
		record = e.inside()
		size := c.encoder.SizeWith(record) + outer + slack*(u.count+1)
		if size > most || c.encoder.Add(record) != nil {
			break
		}
		u.last = e
		u.count++
	}
	u.wide = c.encoder.Size() + outer
	if !c.limits.boxes || c.limits.journal { // a box holds the records anew
		u.data = c.encoder.Seal(make([]byte, 0, c.encoder.Size()))
	}
}

// inside is the record as it stands in an aggregate.
func (e *entry) inside() aggregate.Record {
	return aggregate.Record{
		PartitionKey: e.record.PartitionKey, ExplicitHashKey: e.record.ExplicitHashKey,
		Data: e.record.Data,
	}
}

// wraps reports whether a unit that begins with the record is an aggregate made here.
func (c *core) wraps(e *entry) bool { return c.limits.units && !e.aggregated }

// joins reports whether a record may stand in a unit that begins with first.
func (c *core) joins(first, e *entry) bool { return !e.aggregated && !e.alone && !first.alone }

// cutQueue takes a unit's records out of the lane's queue.
func (l *lane) cutQueue(u *unit) {
	last := u.last
	l.first, last.next = last.next, nil
	if l.first == nil {
		l.last = nil
	}
}

// unfold gives the unit's records back to the front of the lane's queue, for a new unit: for
// certain none of them is in the stream, nor will it be.
func (c *core) unfold(now time.Time, l *lane) {
	u := &l.unit
	for e := u.first; e != nil; e = e.next {
		e.tried += u.attempts
	}
	if l.carrier {
		c.unpack(now, u)
		c.end(l, Again)
		return
	}
	if u.last.next = l.first; l.first == nil {
		l.last = u.last
	}
	l.first = u.first
	c.end(l, Again)
}

// end forgets the unit, whose number is then settled.
func (c *core) end(l *lane, fate UnitFate) {
	u := &l.unit
	c.groups.settle(u)
	if u.journalled {
		c.told = append(c.told, SettledUnit{
			Producer: u.id.Producer, Number: u.id.Number, Fate: fate,
		})
	}
	*u = unit{}
	if len(l.resumed) > 0 {
		l.unit, l.resumed = l.resumed[0], l.resumed[1:]
	}
}

// widestTag is as long as a unit's tag can be, and widestUnordered that of one without an order.
var (
	widestTag = aggregate.Unit{
		Number: aggregate.MaxNumber, Low: aggregate.MaxNumber,
	}.AppendTo(nil)
	widestUnordered = aggregate.Unit{
		Number: aggregate.MaxNumber, Low: aggregate.MaxNumber, Unordered: true,
	}.AppendTo(nil)
)

// wrappedSize is what the API's limits count of the record in a unit of its own, at most.
func wrappedSize(byShard bool, partition, hash string, data []byte) int {
	outer, tags := partition, widestTag
	if byShard {
		outer, tags = outerKey, widestUnordered
	}
	return len(outer) + aggregate.SizeOf(aggregate.Record{
		PartitionKey: partition, ExplicitHashKey: hash, Data: data, Tags: tags,
	})
}
