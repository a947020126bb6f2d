package outbox

import (
	"time"

	"github.com/runnel-stream/runnel/producer"
)

// Stats is a snapshot of a Relay.
type Stats struct {
	Leading bool   // it has the lease; otherwise the numbers of rows and units are 0
	Owner   string // the other relay that has the lease; "" for none
	Epoch   int64  // of the lease

	Sent       int64 // rows that are in the stream and deleted, by this Relay
	Dead       int64 // rows that became dead letters, by this Relay
	Inversions int64 // rows put behind a later row of their key, by all relays of the table

	Rows     int // rows that were read and are not deleted
	Bytes    int // their data and keys
	Units    int // units in the journal
	Held     int // held keys
	PassedBy int // keys without room; their rows are still in the table

	// The ages of the oldest row and of the oldest open transaction, as of at most 10 s ago; see
	// Status, also for negative ones.
	OldestRow, OldestTransaction time.Duration

	Producer producer.Stats // of the present lease
}

func (c *counts) add(more *counts) {
	c.sent += more.sent
	c.dead += more.dead
}

// Stats returns a snapshot. It makes no call, and may be called every second. It is safe for
// concurrent use.
func (r *Relay) Stats() Stats {
	r.mu.Lock()
	s, total, owner := r.session, r.total, r.owner
	r.mu.Unlock()
	st := Stats{Owner: owner, Sent: total.sent, Dead: total.dead}
	if s == nil {
		return st
	}
	s.committer.mu.Lock()
	st.Leading, st.Epoch = true, s.committer.fence.epoch
	s.committer.mu.Unlock()
	st.Units, st.Inversions = s.journal.open(), s.inversions()
	n := s.intake
	n.mu.Lock()
	st.Sent += n.counts.sent
	st.Dead += n.counts.dead
	st.Rows, st.Bytes, st.Held, st.PassedBy = n.rows, n.bytes, len(n.heldKeys), n.overKeys
	n.mu.Unlock()
	s.mu.Lock()
	p := s.producer
	st.OldestRow, st.OldestTransaction = s.oldestRow, s.oldestTransaction
	s.mu.Unlock()
	if p != nil {
		st.Producer = p.Stats()
	}
	return st
}
