package producer

import (
	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/aggregate"
)

// packing turns records into Kinesis records. There is one for each way: plainPacking,
// keyPacking, shardPacking and nonePacking. OrderChained packs as OrderPlain does; it differs in
// how a call is sent (chain).
//
// size, examine and seal run outside the producer's mutex and read nothing that changes. All other
// methods run under it.
type packing interface {
	// size returns the most bytes that the record takes in a Kinesis record that it has alone.
	size(r *runnel.Record) int
	// examine sets the fields of a new record that no lane is needed for.
	examine(e *entry)

	// find returns the lane that a record waits in, or nil if there is none. Where the lane has
	// the record's hash key it sets that: an MD5 for each record would cost more than the lane.
	find(e *entry) *lane
	// enter makes the lane of a record with a hash key, for which find returned nil.
	enter(e *entry) *lane
	// adopt returns the lane for a unit of an earlier run, by the keys of its Kinesis record and
	// one of its records.
	adopt(key laneKey, e *entry) *lane
	// takeBack returns the records of a lane's unit to where records wait, in their order.
	takeBack(l *lane)
	// recharted moves the records that wait to the shards' new list.
	recharted()

	// mostLanes returns the most lanes whose units go into one call.
	mostLanes() int
	// charted reports whether lanes can be packed now.
	charted() bool
	// carrier returns the lane that carries the next unit of a lane.
	carrier(l *lane) *lane
	// fill adds to a numbered unit of one record those that follow it in its lane, as far as the
	// Kinesis record then has no more than so many bytes, and sets the unit's count and size.
	fill(u *unit, most int)
	// loader returns what fills a call with the units of some of so many ready lanes.
	loader(made *call, ready int) loader
	// cost returns how much of a shard's rate a unit of so many bytes takes.
	cost(bytes int) int
	// judge returns the verdict on a stored Kinesis record of units: void if readers drop it.
	judge(p *parcel, v verdict) verdict

	// seal sets the key and the data of a parcel. The data of a unit never changes: a later
	// attempt sends the same bytes.
	seal(s *sealer, p *parcel)
}

// newPacking returns the packing of the core's order, with the parts of the core that it needs.
func newPacking(c *core) packing {
	own, alone := ownLanes{c.lanes}, separate{&c.limits}
	switch c.limits.order {
	case OrderNone:
		return &nonePacking{separate: alone, lanes: c.lanes, ready: &c.ready, chart: &c.chart}
	case OrderShard:
		return &shardPacking{ownLanes: own, chart: &c.chart, limits: &c.limits}
	case OrderKey:
		return &keyPacking{ownLanes: own, separate: alone}
	default:
		return &plainPacking{ownLanes: own, separate: alone}
	}
}

// outerKey is the partition key of Kinesis records with records of many keys, as the KPL sets it.
// Their explicit hash key decides their shard.
const outerKey = aggregate.OuterPartitionKey

// ownLanes is the part of a packing in which each pair of keys has a lane of its own.
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

// separate is the part of a packing in which each unit has a Kinesis record of its own.
type separate struct {
	limits *limits
}

func (s separate) mostLanes() int                   { return s.limits.records }
func (separate) charted() bool                      { return true }
func (separate) cost(bytes int) int                 { return bytes + perRecord }
func (separate) judge(_ *parcel, v verdict) verdict { return v }
func (separate) seal(s *sealer, p *parcel)          { s.alone(p) }

func (s separate) loader(made *call, ready int) loader { return newApart(made, s.limits, ready) }

// filler chooses the records of units by their encoded size.
type filler struct {
	sizer aggregate.Sizer
	tags  aggregate.Tags
}

// fill fills a unit for a Kinesis record whose partition key has outer bytes. slack is added for
// each record.
func (f *filler) fill(u *unit, most, outer, slack int) {
	record := u.first.inside()
	f.tags = u.id.AppendTo(f.tags[:0])
	record.Tags = f.tags
	f.sizer.Reset()
	f.sizer.Add(record)
	for e := u.first.next; e != nil && e.joins(u.first); e = e.next {
		record = e.inside()
		if f.sizer.SizeWith(record)+outer+slack*(u.count+1) > most {
			break
		}
		f.sizer.Add(record)
		u.last = e
		u.count++
	}
	u.wide = f.sizer.Size() + outer
}

// joins reports whether a record may be in the unit that begins with first.
func (e *entry) joins(first *entry) bool { return !e.asIs && !e.alone && !first.alone }

// inside returns the record for an aggregate.
func (e *entry) inside() aggregate.Record {
	return aggregate.Record{
		PartitionKey: e.record.PartitionKey, ExplicitHashKey: e.record.ExplicitHashKey,
		Data: e.record.Data,
	}
}

// examineUnit is examine for the packings that make units: an aggregate goes as it is, since
// aggregates do not nest.
func examineUnit(p packing, e *entry) {
	e.asIs = e.asIs || aggregate.IsAggregate(e.record.Data)
	if e.wide = e.size(); !e.asIs {
		e.wide = p.size(&e.record)
	}
}

// The longest tags that a unit can have, with an order and without one.
var (
	longestTags = aggregate.Unit{
		Number: aggregate.MaxNumber, Low: aggregate.MaxNumber,
	}.AppendTo(nil)
	longestUnordered = aggregate.Unit{
		Number: aggregate.MaxNumber, Low: aggregate.MaxNumber, Unordered: true,
	}.AppendTo(nil)
)

// unitSize returns the most bytes of a unit of one record, in a Kinesis record with a partition key
// of outer bytes.
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
			record := e.inside()
			if e == l.unit.first {
				record.Tags = s.tags
			}
			_ = s.encoder.Add(record) // Put has checked everything that Add checks
		}
	}
	return s.encoder.Seal(make([]byte, 0, s.encoder.Size()))
}

// unit encodes the lane's unit if this is its first attempt.
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
