package producer

import (
	"time"

	"github.com/runnel-stream/runnel"
)

// parcel is a Kinesis record of a call: one unit or, in OrderShard, the units of several lanes.
type parcel struct {
	lanes []*lane // the lanes of its units, in the order of the units in it
	size  int     // bytes of data and partition key; an upper bound until it is sealed
	key   laneKey // set by packing.seal, as is data
	data  []byte
}

// records returns the number of records in the parcel.
func (p *parcel) records() (n int) {
	for _, l := range p.lanes {
		n += l.unit.count
	}
	return n
}

// call is one call of the API. Its units are fixed when it is made, and do not change until it has
// landed. seal encodes them.
type call struct {
	lanes   []*lane // the lanes of all parcels, in order
	parcels []parcel
	records int
	bytes   int                   // the sum of their sizes; an upper bound until they are sealed
	sealed  bool                  // the parcels have their key and data
	probe   bool                  // it finds out whether an outage has ended
	until   time.Time             // the latest time to send it; zero: no limit
	fresh   []*lane               // the lanes with units that the journal does not have yet
	after   runnel.SequenceNumber // SequenceNumberForOrdering, for PutRecord
}

// seal encodes the call. It needs no mutex: while a call is in flight, nothing else changes the
// units of its lanes.
func (made *call) seal(by packing, with *sealer) {
	made.bytes, made.sealed = 0, true
	for i := range made.parcels {
		p := &made.parcels[i]
		by.seal(with, p)
		p.size = len(p.data) + len(p.key.partition)
		made.bytes += p.size
	}
}

// loader fills a call. For each lane, the core calls takes, then room if a unit is to be frozen,
// and then load.
type loader interface {
	// takes reports whether the next unit of a lane still fits.
	takes(l *lane) bool
	// room returns the most bytes of a new unit of that lane.
	room() int
	// load puts the lane's unit into a parcel.
	load(l *lane)
	// finish completes the call.
	finish()
}

// mostSuspicion bounds the shifts by a unit's suspicion.
const mostSuspicion = 16

// separateLoader loads a call with a parcel for each unit.
type separateLoader struct {
	made           *call
	limits         *limits
	records, bytes int
}

func newSeparateLoader(made *call, l *limits, ready int) *separateLoader {
	a := &separateLoader{made: made, limits: l, records: l.records, bytes: l.bytes}
	if made.probe {
		a.records = 1
	}
	made.lanes = make([]*lane, 0, min(a.records, ready))
	return a
}

func (a *separateLoader) takes(l *lane) bool {
	doubt := min(l.unit.suspicion, mostSuspicion)
	a.records = min(a.records, max(a.limits.records>>doubt, 1))
	a.bytes = min(a.bytes, a.limits.bytes>>doubt)
	n := len(a.made.lanes)
	return n < a.records && (n == 0 || a.made.bytes+l.size() <= a.bytes)
}

func (a *separateLoader) room() int { return min(a.limits.unit, a.bytes-a.made.bytes) }

func (a *separateLoader) load(l *lane) { a.made.bytes += l.size() }

func (a *separateLoader) finish() {
	a.made.parcels = make([]parcel, len(a.made.lanes))
	for i, l := range a.made.lanes {
		a.made.parcels[i] = parcel{lanes: a.made.lanes[i : i+1 : i+1], size: l.size()}
	}
}
