package producer

import (
	"math"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/keyspace"
)

// shardPacking packs the records of each lane into a unit, as keyPacking does, and packs the units
// of many lanes into one Kinesis record for their shard. A Kinesis record is made for one call. If
// the call fails, its units are packed again, each with the same number and records, together with
// other units that are ready then. A filter takes the first valid copy of a unit, whichever Kinesis
// record it is in.
type shardPacking struct {
	ownLanes
	filler filler
	chart  *chart
	limits *limits
}

// sharedOverhead is the most bytes that a record needs in a shared Kinesis record more than in one
// of its own: the index of its keys in the key tables can be larger, and a larger index has a
// longer encoding.
const sharedOverhead = 6

func (*shardPacking) size(r *runnel.Record) int {
	return unitSize(r, len(outerKey), longestUnordered)
}

func (s *shardPacking) examine(e *entry) { examineUnit(s, e) }

func (*shardPacking) mostLanes() int { return math.MaxInt }

func (s *shardPacking) charted() bool { return len(s.chart.open) > 0 }

func (s *shardPacking) fill(u *unit, most int) {
	s.filler.fill(u, most, len(outerKey), sharedOverhead)
}

// cost does not add perRecord, since many units share one Kinesis record.
func (*shardPacking) cost(bytes int) int { return bytes }

func (s *shardPacking) judge(p *parcel, v verdict) verdict {
	return s.chart.judgeIn(v, p.lanes[0].hashKey(), func(within keyspace.Range) bool {
		for _, l := range p.lanes {
			if !within.Contains(l.hashKey()) {
				return false
			}
		}
		return true
	})
}

// seal encodes the units of a parcel together. With a Journal it also encodes each by itself,
// because the journal stores units, not Kinesis records.
func (s *shardPacking) seal(with *sealer, p *parcel) {
	first := p.lanes[0]
	if !first.unit.wrapped() {
		with.alone(p)
		return
	}
	if s.limits.journal {
		for _, l := range p.lanes {
			with.unit(l)
		}
	}
	p.key = laneKey{outerKey, first.hashKey().String()}
	p.data = with.aggregate(p.lanes...)
}

func (s *shardPacking) loader(made *call, _ int) loader {
	l := &sharedLoader{
		made: made, chart: s.chart, limits: s.limits,
		lanes: math.MaxInt, bytes: s.limits.bytes, open: map[runnel.ShardID]int{},
	}
	if made.probe {
		l.lanes = 1
	}
	return l
}

// sharedLoader loads a call with parcels that units of one shard share. Each unit, oldest head
// first, goes into the open parcel of its shard, or into a new one if that is full.
type sharedLoader struct {
	made   *call
	chart  *chart
	limits *limits

	lanes, bytes int
	open         map[runnel.ShardID]int // the index of each shard's open parcel

	// About the lane of the last call of takes:
	shard runnel.ShardID
	asIs  bool // its unit needs a parcel of its own
	into  int  // the index of the parcel for its unit; -1: a new one
}

func (t *sharedLoader) takes(l *lane) bool {
	if doubt := min(l.unit.suspicion, mostSuspicion); doubt > 0 {
		t.lanes = min(t.lanes, max(t.limits.records>>doubt, 1))
		t.bytes = min(t.bytes, t.limits.bytes>>doubt)
	}
	t.shard, _ = t.chart.predict(l.hashKey())
	t.asIs = l.head().asIs
	size, into := l.size()+sharedOverhead*max(l.unit.count, 1), -1
	if at, ok := t.open[t.shard]; ok && !t.asIs &&
		t.made.parcels[at].size+size <= t.limits.unit {
		into = at
	}
	t.into = into
	n := len(t.made.lanes)
	return n < t.lanes && (n == 0 || t.made.bytes+size <= t.bytes) &&
		(into >= 0 || len(t.made.parcels) < t.limits.records)
}

func (t *sharedLoader) room() int {
	held := len(outerKey)
	if t.into >= 0 {
		held = t.made.parcels[t.into].size
	}
	return min(t.limits.unit-held, t.bytes-t.made.bytes)
}

func (t *sharedLoader) load(l *lane) {
	if t.into < 0 {
		t.into = len(t.made.parcels)
		t.made.parcels = append(t.made.parcels, parcel{size: len(outerKey)})
		if !t.asIs {
			t.open[t.shard] = t.into
		}
	}
	p, size := &t.made.parcels[t.into], l.size()+sharedOverhead*l.unit.count
	p.lanes = append(p.lanes, l)
	p.size += size
	t.made.bytes += size
}

func (t *sharedLoader) finish() {
	t.made.lanes = t.made.lanes[:0]
	for _, p := range t.made.parcels {
		t.made.lanes = append(t.made.lanes, p.lanes...)
	}
}
