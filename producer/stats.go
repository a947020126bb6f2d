package producer

import "time"

// Stats is the state of a producer at a moment, and what it has done until then.
type Stats struct {
	Taken       uint64 // records that Put took, and those of Config.Resume
	Delivered   uint64 // records acknowledged, or found in the stream
	Undelivered uint64 // records refused, given up, unresolved, or left when Close ran out of time

	Units     uint64 // made of them; in OrderPlain, one each
	Calls     uint64 // calls begun
	Retried   uint64 // attempts of records after their unit's first: (record, call) pairs
	Throttled uint64 // attempts of records that were over a limit
	// Unknown counts the attempts of records that had no answer. It is the upper bound for
	// the doubles that this producer has left in the stream; those of units with an identity
	// are dropped by consumers.
	Unknown uint64
	// LookedUp counts the units of which it was read up whether they are in the stream, and
	// Found those that were.
	LookedUp, Found uint64
	// Renewed counts the units that were surely not in the stream after aggregate.H, and
	// whose records were sent in new ones.
	Renewed uint64
	// Void counts the units that were stored in a shard that they were not packed for, since
	// it was split or merged: readers drop them, and they, or their records, were sent anew.
	Void uint64
	// Withheld counts the calls that were not made: the Journal failed, or it was too late.
	Withheld uint64

	CallsInFlight   int           // calls without an outcome
	RecordsInFlight int           // records in these calls
	Lanes           int           // with a record that has no result; in OrderNone, the shards
	Buffered        int           // records from Put to the end of their callback
	BufferedBytes   int           // their data and keys
	OldestAge       time.Duration // since Put, of the oldest record without a result; or 0
	Outage          bool          // nothing answers; one unit at a time finds out when that ends
}

// Stats returns a snapshot. It is cheap enough to be called every second.
func (p *Producer) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	c, n := p.mu.core, &p.mu.core.ledger.counts
	return Stats{
		Taken: c.ledger.taken, Delivered: n.delivered, Undelivered: n.undelivered,
		Units: n.units, Calls: n.calls, Retried: n.retried, Throttled: n.throttled,
		Unknown: n.unknown, LookedUp: n.lookedUp, Found: n.found, Renewed: n.renewed,
		Void: n.void, Withheld: n.withheld,
		CallsInFlight: c.calls, RecordsInFlight: c.flying,
		Lanes: len(c.lanes), Buffered: p.mu.buffered, BufferedBytes: p.mu.bytes,
		OldestAge: c.ledger.age(p.clock.now()), Outage: c.gate.active(),
	}
}
