package producer

import "time"

// Stats is the state of a producer at a moment, and what it has done until then.
type Stats struct {
	Taken       uint64 // records that Put took
	Delivered   uint64 // records acknowledged
	Undelivered uint64 // records refused, given up, or left when Close ran out of time

	Calls     uint64 // PutRecords calls begun
	Retried   uint64 // attempts of records after their first: (record, call) pairs
	Throttled uint64 // attempts of records that were over a limit
	// Unknown counts the attempts of records that had no answer. It is the upper bound for
	// the doubles that this producer has left in the stream.
	Unknown uint64

	CallsInFlight   int
	RecordsInFlight int
	Lanes           int           // with a record that has no result
	Buffered        int           // records from Put to the end of their callback
	BufferedBytes   int           // their data and keys
	OldestAge       time.Duration // since Put, of the oldest record without a result; or 0
	Outage          bool          // nothing answers; one record at a time finds out when that ends
}

// Stats returns a snapshot. It is cheap enough to be called every second.
func (p *Producer) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.mu.core
	return Stats{
		Taken: c.taken, Delivered: c.counts.delivered, Undelivered: c.counts.undelivered,
		Calls: c.counts.calls, Retried: c.counts.retried, Throttled: c.counts.throttled,
		Unknown: c.counts.unknown, CallsInFlight: c.calls, RecordsInFlight: c.flying,
		Lanes: len(c.lanes), Buffered: p.mu.buffered, BufferedBytes: p.mu.bytes,
		OldestAge: c.age(time.Now()), Outage: c.gate.active(),
	}
}
