package producer

import (
	"time"

	"github.com/runnel-stream/runnel"
)

// parcel is a Kinesis record of a call: one unit or, in OrderShard, units of several lanes.
type parcel struct {
	lanes []*lane // whose units it carries, in their order in it
	size  int     // of data and partition key; until it is sealed, at most
	key   laneKey // as is data, set by packing.seal
	data  []byte
}

// records returns the number of records in the parcel.
func (p *parcel) records() (n int) {
	for _, l := range p.lanes {
		n += l.unit.count
	}
	return n
}

// call is one call of the API. Its units are fixed when it is made, and stay as they are until it
// has landed. Their bytes are made by seal.
type call struct {
	lanes   []*lane // parcel by parcel
	parcels []parcel
	records int
	bytes   int  // of the parcels; until they are sealed, at most
	sealed  bool // the parcels have their bytes
	probe   bool
	until   time.Time             // it is not to be sent later; zero: no limit
	fresh   []*lane               // those whose units the journal has not kept yet
	after   runnel.SequenceNumber // SequenceNumberForOrdering, for PutRecord
}

// seal makes the bytes of the call. It needs no mutex: while the call is in flight nothing else
// changes its lanes' units.
func (made *call) seal(by packing, with *sealer) {
	made.bytes, made.sealed = 0, true
	for i := range made.parcels {
		p := &made.parcels[i]
		by.seal(with, p)
		p.size = len(p.data) + len(p.key.partition)
		made.bytes += p.size
	}
}

// loader fills a call.
type loader interface {
	// takes reports whether the next unit of a lane still fits.
	takes(l *lane) bool
	// room returns the most bytes that a new unit of the lane may have.
	room() int
	// load puts the lane's unit, now made, into a parcel.
	load(l *lane)
	// finish completes the call.
	finish()
}

// mostSuspicion bounds the shifts by a unit's suspicion.
const mostSuspicion = 16

// apart loads a call with a parcel for each unit.
type apart struct {
	made           *call
	limits         *limits
	records, bytes int
}

func newApart(made *call, l *limits, ready int) *apart {
	a := &apart{made: made, limits: l, records: l.records, bytes: l.bytes}
	if made.probe {
		a.records = 1
	}
	made.lanes = make([]*lane, 0, min(a.records, ready))
	return a
}

func (a *apart) takes(l *lane) bool {
	doubt := min(l.unit.suspicion, mostSuspicion)
	a.records = min(a.records, max(a.limits.records>>doubt, 1))
	a.bytes = min(a.bytes, a.limits.bytes>>doubt)
	n := len(a.made.lanes)
	return n < a.records && (n == 0 || a.made.bytes+l.size() <= a.bytes)
}

func (a *apart) room() int { return min(a.limits.unit, a.bytes-a.made.bytes) }

func (a *apart) load(l *lane) { a.made.bytes += l.size() }

func (a *apart) finish() {
	a.made.parcels = make([]parcel, len(a.made.lanes))
	for i, l := range a.made.lanes {
		a.made.parcels[i] = parcel{lanes: a.made.lanes[i : i+1 : i+1], size: l.size()}
	}
}
