package aggregate

import (
	"iter"
	"time"
)

// H is how long after its first send a unit may be sent again, a constant of the format: the
// life of a request's signature. A call is stored at most 2H after it was sent, so a unit's copies
// lie at most 3H apart.
const H = 5 * time.Minute

// A filter remembers a producer for rememberH times H of its own clock, which counts each step
// between two arrivals as at most H/stepsInH. See Filter.Advance.
const (
	rememberH = 4
	stepsInH  = 5
)

// The most that a Filter keeps, so that no producer, broken or malicious, takes its memory. A run
// of a producer has up to 16 ids, each with a lane or more. A state has at most 31 bytes for a
// producer and 19 for a lane, so it is below MaxStateSize. In memory a producer takes about 250
// bytes and a lane about 50.
const (
	MaxProducers = 1 << 18
	MaxLanes     = 1 << 18
	MaxStateSize = 13 << 20
)

// Filter drops the doubles of units: what a retry after a lost answer left in the stream. It is
// fed with every unit of a shard in the shard's order, begins with the Union over the shard's
// parents, and keeps for each producer the highest low-water mark seen, and for every lane that
// has a unit at or above it the lane's highest number.
//
// Why that is exact. A lane has one unit in flight, so its units' first copies stand in order,
// and what is not above the lane's highest number is a double, or was given up and overtaken. A
// unit whose Low is above n was frozen after n was settled, so n's first copy, if it has one,
// stands before it in every shard that holds both: what is below the mark is a double too. And
// an unsettled n is not below any Low, so it is never dropped.
//
// A record without a unit passes it by; call Advance for it. The zero value is a filter that has
// seen nothing. It is not safe for concurrent use.
type Filter struct {
	// H replaces the constant H where it is not zero, for tests. It is no part of the state.
	H time.Duration
	// Counts is how Admit has judged so far. It is no part of the state.
	Counts Counts

	producers map[ProducerID]*producer
	lanes     int    // in all producers
	clock     int64  // the sum of the capped steps between arrivals, in milliseconds
	arrival   int64  // the latest one, in milliseconds since 1970; 0 if none was known
	fullUntil int64  // on the clock: makeRoom does not try before; no part of the state
	known     bool   // the unit judged last is not the first one that the lane has
	changes   *Delta // since the last call of Delta; nil until Track
}

// Counts is how many units Admit has judged, by verdict, and how many producers were Evicted to
// make room.
type Counts struct {
	Fresh, Doubles, Malformed, Unfiltered, Evicted uint64
}

// Verdict is what to do with a unit.
type Verdict int

const (
	// VerdictFresh is a unit's first copy: deliver it.
	VerdictFresh Verdict = iota + 1
	// VerdictDouble is a copy of what was delivered, or a unit that was given up and overtaken:
	// drop its records; their positions count as processed.
	VerdictDouble
	// VerdictMalformed is a unit that breaks the format: a Low above its Number or further below it
	// than Window, or a producer that has used a number for several lanes. Deliver it. What it
	// says has not touched the filter, so its doubles are delivered too.
	VerdictMalformed
	// VerdictUnfiltered is a unit that the filter has no room for: it has MaxProducers, or
	// MaxLanes, and all of them are in use. Deliver it; its doubles may be delivered too.
	VerdictUnfiltered
)

// Deliver reports whether the unit's records are to be delivered.
func (v Verdict) Deliver() bool { return v != VerdictDouble }

// producer is what the filter keeps of one. Lanes with a number below low may still be there:
// they change no verdict, and go at the next prune.
type producer struct {
	low     uint64 // 0 once the producer is known to be broken
	last    int64  // the filter's clock at its last record
	lanes   map[Lane]uint64
	pruneAt int
}

// Admit judges a unit and remembers it. arrival is that of the Kinesis record; the zero time if
// it is not known: the filter's clock does not move then. lane is unit.Lane of the unit's first
// record.
func (f *Filter) Admit(unit Unit, lane Lane, arrival time.Time) Verdict {
	f.Advance(arrival)
	verdict := f.judge(unit, lane)
	if f.changes != nil {
		f.note(unit, lane, verdict)
	}
	switch verdict {
	case VerdictFresh:
		f.Counts.Fresh++
	case VerdictDouble:
		f.Counts.Doubles++
	case VerdictMalformed:
		f.Counts.Malformed++
	case VerdictUnfiltered:
		f.Counts.Unfiltered++
	}
	return verdict
}

func (f *Filter) judge(unit Unit, lane Lane) Verdict {
	if !unit.sound() {
		return VerdictMalformed
	}
	p := f.producers[unit.Producer]
	if p == nil {
		if !f.makeRoom(true) {
			return VerdictUnfiltered
		}
		if f.producers == nil {
			f.producers = map[ProducerID]*producer{}
		}
		p = newProducer(unit.Low, f.clock)
		f.producers[unit.Producer] = p
	}
	p.last = f.clock
	if p.low == 0 {
		return VerdictMalformed
	}
	highest, known := p.lanes[lane]
	f.known = known
	if unit.Number < p.low || known && unit.Number <= highest {
		return VerdictDouble
	}
	p.low = max(p.low, unit.Low)
	if !known {
		f.lanes -= p.prune()
		switch {
		case p.low == 0:
			return VerdictMalformed
		case !f.makeRoom(false):
			return VerdictUnfiltered
		}
		f.lanes++
	}
	p.lanes[lane] = unit.Number
	return VerdictFresh
}

func newProducer(low uint64, last int64) *producer {
	return &producer{low: low, last: last, lanes: map[Lane]uint64{}, pruneAt: minPrune}
}

const minPrune = 8

// prune removes, when they may be half of all, the lanes below low and returns how many. More
// than Window+1 cannot remain: each has its own number, and none lies further than Window above
// low. If they do, the producer is broken, and all are removed.
func (p *producer) prune() (removed int) {
	before := len(p.lanes)
	if before < p.pruneAt {
		return 0
	}
	p.dropBelowLow()
	if len(p.lanes) > Window+1 {
		p.low, p.lanes = 0, nil
	}
	return before - len(p.lanes)
}

func (p *producer) dropBelowLow() {
	for lane, number := range p.lanes {
		if number < p.low {
			delete(p.lanes, lane)
		}
	}
	p.pruneAt = 2*len(p.lanes) + minPrune
}

// Pass yields the user records of an aggregate that are to be delivered, with their
// sub-sequence numbers, and takes its units in. Records before the first unit's are delivered.
// Range to the end: the state belongs to the last sub-sequence number.
func (f *Filter) Pass(d *Decoder, arrival time.Time) iter.Seq2[int, Record] {
	return func(yield func(int, Record) bool) {
		f.Advance(arrival)
		deliver := true
		for sub, record := range d.Records() {
			if unit, ok := record.Unit(); ok {
				deliver = f.Admit(unit, unit.Lane(record), arrival).Deliver()
			}
			if deliver && !yield(sub, record) {
				return
			}
		}
	}
}
