package producer

import "time"

// Stats is a snapshot of a producer: totals since New, and the present state.
type Stats struct {
	Taken       uint64 // records taken by Put or from Config.Resume
	Delivered   uint64 // records acknowledged, or found by a look-up
	Undelivered uint64 // records refused, given up, unresolved, or left when Close ran out of time

	Units     uint64 // units made; in OrderPlain and OrderChained one for each record
	Calls     uint64 // calls begun
	Retried   uint64 // pairs of a record and a call, after the first attempt of the record's unit
	Throttled uint64 // pairs of a record and a call that were over a limit
	// Unknown counts the pairs of a record and a call without an answer. It is the upper bound for
	// the duplicates that this producer has left in the stream. Consumers drop those with an
	// identity.
	Unknown uint64
	// LookedUp counts the units that were looked up in the stream. Found counts those that were
	// there.
	LookedUp, Found uint64
	// Renewed counts the units that were certainly not in the stream after aggregate.H. Their
	// records were sent in new units.
	Renewed uint64
	// Void counts the units that were stored in another shard than they were packed for, after a
	// split or merge. Readers drop them. They, or their records in new units, were sent again.
	Void uint64
	// Withheld counts the calls that the producer decided not to send, because the Journal failed
	// or a unit's aggregate.H had passed.
	Withheld uint64

	CallsInFlight   int           // calls without an outcome
	RecordsInFlight int           // records in these calls
	Lanes           int           // lanes with a record that has no result; in OrderNone, shards
	Buffered        int           // records between Put and the end of their callback
	BufferedBytes   int           // data and partition keys of these records
	OldestAge       time.Duration // time since the Put of the oldest record without a result, or 0
	Outage          bool          // calls get no answer; one unit at a time is sent as a probe
}

// Stats returns a snapshot. It takes a mutex and few steps, so it may be called every second.
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
