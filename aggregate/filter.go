package aggregate

import (
	"iter"
	"time"
)

// H is the time after its first send during which a unit may be sent again. It is a constant of the
// format: the lifetime of a request's signature. A call is stored at most 2H after it was sent, so
// the copies of a unit lie at most 3H apart.
const H = 5 * time.Minute

// A filter remembers a producer for rememberH times H of its own clock, which counts each step
// between two arrivals as at most H/stepsInH. See Filter.Advance.
const (
	rememberH = 4
	stepsInH  = 5
)

// The limits of a Filter, so that no producer, broken or malicious, exhausts its memory. A run of a
// producer has up to 16 ids, each with one lane or more. An encoded state has at most 31 bytes for
// a producer and 19 for a lane, so it is below MaxStateSize bytes. In memory a producer takes about
// 250 bytes and a lane about 50.
const (
	MaxProducers = 1 << 18
	MaxLanes     = 1 << 18
	MaxStateSize = 13 << 20
)

// Filter drops the doubles of units, which a retry after a lost answer leaves in the stream. It
// judges every unit of one shard in the shard's order, and begins with the Union of the filters of
// the shard's parents. For each producer it holds the highest Low seen, its low-water mark. For
// each lane with a unit at or above that mark it holds the lane's highest number.
//
// Why that is exact. A lane has one unit in flight, so the first copies of its units are in order:
// a number at or below the lane's highest one is a double, or was given up and overtaken. A unit
// whose Low is above n was frozen after n was settled, so the first copy of n, if there is one,
// precedes it in every shard that holds both: a number below the mark is a double too. An
// unsettled n is not below any Low, so the filter never drops it.
//
// Call Advance, not Admit, for a record without a unit. The zero value is an empty filter. It is
// not safe for concurrent use.
type Filter struct {
	// Counts sums up the verdicts of Admit. It is no part of the state.
	Counts Counts

	producers map[ProducerID]*producer
	lanes     int    // in all producers
	clock     int64  // the sum of the capped steps between arrivals, in milliseconds
	arrival   int64  // the latest one, in milliseconds since 1970; 0 if none was known
	fullUntil int64  // on the clock: makeRoom evicts nothing before; no part of the state
	known     bool   // the lane of the unit judged last was known before
	changes   *Delta // since the last call of Delta; nil until Track
}

// Counts are numbers of units by verdict of Admit.
type Counts struct {
	// Fresh, Doubles, Malformed and Unfiltered count units, by verdict.
	Fresh, Doubles, Malformed, Unfiltered uint64
	// Evicted counts the producers that a full filter forgot to make room. Doubles of such a
	// producer may be delivered.
	Evicted uint64
}

// Verdict is Admit's judgement of a unit.
type Verdict int

const (
	// VerdictFresh is a unit's first copy: deliver it.
	VerdictFresh Verdict = iota + 1
	// VerdictDouble is a copy of a delivered unit, or a unit that was given up and overtaken. Drop
	// its records; their positions count as processed.
	VerdictDouble
	// VerdictMalformed is a unit that breaks the format: its Low is above its Number or further
	// below it than Window, or its producer used one number for several lanes. Deliver it. The
	// filter does not remember it, so its doubles are delivered too.
	VerdictMalformed
	// VerdictUnfiltered is a unit without room in the filter: MaxProducers or MaxLanes are reached,
	// and all of them are in use. Deliver it. Its doubles may be delivered too.
	VerdictUnfiltered
)

// Deliver reports whether the unit's records are to be delivered.
func (v Verdict) Deliver() bool { return v != VerdictDouble }

// producer is the filter's state of one producer. Lanes with a number below low may still be
// present: they change no verdict, and the next prune removes them.
type producer struct {
	low     uint64 // 0 once the producer is known to be broken
	last    int64  // the filter's clock at its last record
	lanes   map[Lane]uint64
	pruneAt int
}

// Admit judges a unit and remembers it. arrival is the arrival time of the Kinesis record; the
// zero time for an unknown one does not move the filter's clock. lane is unit.Lane of the unit's
// first record.
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

// prune removes the lanes below low and returns their number. It does so only when they may be half
// of all lanes, so that its cost is shared by as many units. At most Window+1 can remain: each lane
// has its own number, at most Window above low. If more remain, the producer is broken, and prune
// removes all.
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

// Pass judges the units of an aggregate and yields the user records to deliver, with their
// sub-sequence numbers. It yields the records before the first unit too. Range to the end: the
// filter's state is complete only after the last sub-sequence number.
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
