package producer

import "github.com/runnel-stream/runnel/aggregate"

// fold freezes the front of a lane's queue into its unit: what waits, up to so many bytes with
// the partition key, but at least one record. In the orders without units it is one record as
// it is, and so it is where the record is an aggregate already: aggregates do not nest.
//
// Another way of packing (units of several lanes in one Kinesis record) begins here: what a
// call carries is the unit's data and its lane's keys, and nothing else knows what is inside.
func (c *core) fold(l *lane, most int) {
	u := &l.unit
	*u = unit{first: l.first, last: l.first, count: 1}
	c.counts.units++
	if !c.wraps(l.first) {
		u.data = l.first.record.Data
		l.cutQueue()
		return
	}
	record := aggregate.Record{
		PartitionKey: l.key.partition, ExplicitHashKey: l.key.hash, Data: l.first.record.Data,
	}
	c.tags = c.numbers.next(u).AppendTo(c.tags[:0])
	record.Tags = c.tags
	c.encoder.Reset()
	err := c.encoder.Add(record)
	record.Tags = nil
	for e := l.first.next; err == nil && e != nil && c.joins(e); e = e.next {
		record.Data = e.record.Data
		if c.encoder.SizeWith(record)+len(l.key.partition) > most || c.encoder.Add(record) != nil {
			break
		}
		u.last = e
		u.count++
	}
	if err != nil { // Put has checked what Add checks
		c.numbers.settle(u)
		u.id, u.data = aggregate.Unit{}, l.first.record.Data
	} else {
		u.data = c.encoder.Seal(make([]byte, 0, c.encoder.Size()))
	}
	l.cutQueue()
}

// wraps reports whether a unit that begins with the record is an aggregate made here.
func (c *core) wraps(e *entry) bool { return c.limits.units && !e.aggregated }

// joins reports whether a record may stand behind others of its lane in a unit.
func (c *core) joins(e *entry) bool { return !e.aggregated && !e.alone }

// cutQueue takes the unit's records out of the lane's queue.
func (l *lane) cutQueue() {
	last := l.unit.last
	l.first, last.next = last.next, nil
	if l.first == nil {
		l.last = nil
	}
}

// unfold gives the unit's records back to the front of the lane's queue, for a new unit: for
// certain none of them is in the stream, nor will it be.
func (c *core) unfold(l *lane) {
	u := &l.unit
	for e := u.first; e != nil; e = e.next {
		e.tried += u.attempts
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
	c.numbers.settle(u)
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

// widestTag is as long as a unit's tag can be.
var widestTag = aggregate.Unit{
	Number: aggregate.MaxNumber, Low: aggregate.MaxNumber,
}.AppendTo(nil)

// wrappedSize is what the API's limits count of the record in a unit of its own, at most.
func wrappedSize(partition, hash string, data []byte) int {
	return len(partition) + aggregate.SizeOf(aggregate.Record{
		PartitionKey: partition, ExplicitHashKey: hash, Data: data, Tags: widestTag,
	})
}
