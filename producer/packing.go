package producer

import (
	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/aggregate"
)

// packing turns records into Kinesis records. There is one implementation for each way:
// plainPacking, keyPacking, shardPacking and nonePacking. OrderChained packs as OrderPlain does,
// and differs only in how a call is sent (see chain).
//
// size, examine and seal run outside the producer's mutex and read nothing that changes. All other
// methods run while the mutex is held.
type packing interface {
	// size returns the most bytes of the record in a Kinesis record of its own.
	size(r *runnel.Record) int
	// examine sets the fields of a new record that do not depend on its lane.
	examine(e *entry)

	// find returns the lane of a record, or nil if it does not exist yet. If the lane has the
	// record's hash key, find copies it to the record, because computing an MD5 for each record
	// would cost more than the lane.
	find(e *entry) *lane
	// enter makes the lane of a record with a hash key, after find has returned nil.
	enter(e *entry) *lane
	// adopt returns the lane for a unit of an earlier run, by the keys of the unit's Kinesis record
	// and by its first record.
	adopt(key laneKey, e *entry) *lane
	// takeBack returns the records of a lane's unit to the place where records wait, in their
	// order.
	takeBack(l *lane)
	// recharted adapts the waiting records to a new list of shards.
	recharted()

	// mostLanes returns how many lanes one call can serve.
	mostLanes() int
	// charted reports whether the shards are known as far as packing needs them.
	charted() bool
	// carrier returns the lane that carries the next unit of a lane: the same lane, or a new one.
	carrier(l *lane) *lane
	// fill adds records to a numbered unit of one record: those that follow in its lane, as long as
	// the Kinesis record has at most `most` bytes. It sets the unit's count and size.
	fill(u *unit, most int)
	// loader returns a loader for a new call. ready is the number of ready lanes.
	loader(made *call, ready int) loader
	// cost returns how much of a shard's rate a unit of so many bytes uses.
	cost(bytes int) int
	// judge returns the verdict on a stored Kinesis record: v, or void if readers drop the record.
	judge(p *parcel, v verdict) verdict

	// seal sets the key and the data of a parcel. The data of a unit never changes: later attempts
	// send the same bytes.
	seal(s *sealer, p *parcel)
}

// setOrder sets the packing of the order, and the few other parts of the core that depend on the
// order. The core has no branch on the order elsewhere.
func (c *core) setOrder() {
	own, alone := ownLanes{c.lanes}, separate{&c.limits}
	c.limits.reads = c.limits.reads && c.limits.order.units()
	c.chart.needed = c.limits.order.byShard()
	switch c.limits.order {
	case OrderNone:
		c.groups.dropOrder()
		c.packing = &nonePacking{
			separate: alone, lanes: c.lanes, ready: &c.ready, chart: &c.chart,
		}
	case OrderShard:
		c.packing = &shardPacking{ownLanes: own, chart: &c.chart, limits: &c.limits}
	case OrderKey:
		c.packing = &keyPacking{ownLanes: own, separate: alone}
	case OrderChained:
		c.chain = chain{}
		c.packing = &plainPacking{ownLanes: own, separate: alone}
	default:
		c.packing = &plainPacking{ownLanes: own, separate: alone}
	}
}

// outerKey is the partition key of Kinesis records with records of many keys, as the KPL sets it.
// Such a Kinesis record has an explicit hash key, which decides its shard.
const outerKey = aggregate.OuterPartitionKey

// ownLanes is the part of a packing with one lane for each pair of partition key and explicit hash
// key.
type ownLanes struct {
	lanes map[laneKey]*lane
}

func (o ownLanes) find(e *entry) *lane {
	l := o.lanes[e.key()]
	if l != nil {
		e.hash, e.hashed = l.hashKey(), true
	}
	return l
}

func (o ownLanes) enter(e *entry) *lane {
	l := &lane{key: e.key(), hash: e.hash, hashed: true}
	o.lanes[l.key] = l
	return l
}

func (o ownLanes) adopt(_ laneKey, e *entry) *lane {
	if l := o.find(e); l != nil {
		return l
	}
	return o.enter(e)
}

// takeBack puts the unit's records at the front of its lane's queue.
func (ownLanes) takeBack(l *lane) {
	u := &l.unit
	if u.last.next = l.first; l.first == nil {
		l.last = u.last
	}
	l.first = u.first
}

func (ownLanes) recharted()            {}
func (ownLanes) carrier(l *lane) *lane { return l }

// separate is the part of a packing with one Kinesis record for each unit.
type separate struct {
	limits *limits
}

func (s separate) mostLanes() int                   { return s.limits.records }
func (separate) charted() bool                      { return true }
func (separate) cost(bytes int) int                 { return bytes + perRecord }
func (separate) judge(_ *parcel, v verdict) verdict { return v }
func (separate) seal(s *sealer, p *parcel)          { s.alone(p) }

func (s separate) loader(made *call, ready int) loader {
	return newSeparateLoader(made, s.limits, ready)
}

// filler fills units up to an encoded size.
type filler struct {
	sizer aggregate.Sizer
	tags  aggregate.Tags
}

// fill fills a unit for a Kinesis record with a partition key of `outer` bytes. It adds `slack`
// bytes for each record.
func (f *filler) fill(u *unit, most, outer, slack int) {
	record := u.first.aggregated()
	f.tags = u.id.AppendTo(f.tags[:0])
	record.Tags = f.tags
	f.sizer.Reset()
	f.sizer.Add(record)
	for e := u.first.next; e != nil && e.joins(u.first); e = e.next {
		record = e.aggregated()
		if f.sizer.SizeWith(record)+outer+slack*(u.count+1) > most {
			break
		}
		f.sizer.Add(record)
		u.last = e
		u.count++
	}
	u.wireSize = f.sizer.Size() + outer
}

// joins reports whether a record may be in the unit that begins with first.
func (e *entry) joins(first *entry) bool { return !e.asIs && !e.alone && !first.alone }

// aggregated returns the record as a part of an aggregate, without tags.
func (e *entry) aggregated() aggregate.Record {
	return aggregate.Record{
		PartitionKey: e.record.PartitionKey, ExplicitHashKey: e.record.ExplicitHashKey,
		Data: e.record.Data,
	}
}

// examineUnit implements examine for the packings that make units. An aggregate goes as it is,
// since aggregates do not nest.
func examineUnit(p packing, e *entry) {
	e.asIs = e.asIs || aggregate.IsAggregate(e.record.Data)
	if e.wireSize = e.size(); !e.asIs {
		e.wireSize = p.size(&e.record)
	}
}

// The longest tags of an ordered and of an unordered unit.
var (
	longestTags = aggregate.Unit{
		Number: aggregate.MaxNumber, Low: aggregate.MaxNumber,
	}.AppendTo(nil)
	longestUnordered = aggregate.Unit{
		Number: aggregate.MaxNumber, Low: aggregate.MaxNumber, Unordered: true,
	}.AppendTo(nil)
)

// unitSize returns the most bytes of a unit of one record, in a Kinesis record with a partition key
// of `outer` bytes.
func unitSize(r *runnel.Record, outer int, tags aggregate.Tags) int {
	return outer + aggregate.SizeOf(aggregate.Record{
		PartitionKey: r.PartitionKey, ExplicitHashKey: r.ExplicitHashKey, Data: r.Data, Tags: tags,
	})
}

// sealer encodes units, outside the producer's mutex. It is not safe for concurrent use.
type sealer struct {
	encoder aggregate.Encoder
	tags    aggregate.Tags
}

// aggregate returns the aggregate of some lanes' units, each with its identity on its first record.
func (s *sealer) aggregate(lanes ...*lane) []byte {
	s.encoder.Reset()
	for _, l := range lanes {
		s.tags = l.unit.id.AppendTo(s.tags[:0])
		for e := l.unit.first; e != nil; e = e.next {
			record := e.aggregated()
			if e == l.unit.first {
				record.Tags = s.tags
			}
			_ = s.encoder.Add(record) // Put has checked everything that Add checks
		}
	}
	return s.encoder.Seal(make([]byte, 0, s.encoder.Size()))
}

// unit encodes the lane's unit before its first attempt.
func (s *sealer) unit(l *lane) {
	if u := &l.unit; u.data == nil && u.wrapped() {
		u.data = s.aggregate(l)
	}
}

// alone seals a parcel of one unit.
func (s *sealer) alone(p *parcel) {
	l := p.lanes[0]
	s.unit(l)
	p.key, p.data = l.key, l.unit.bytes()
}
