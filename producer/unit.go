package producer

import (
	"time"

	"github.com/runnel-stream/runnel/aggregate"
)

// unit is the part of a lane that is sent at a time: one or more of its records, with one identity.
// It is frozen before its first attempt, and every attempt sends the same bytes.
type unit struct {
	first, last *entry // nil: no unit is frozen
	count       int
	data        []byte         // in OrderShard only with a Journal, or if it is not wrapped
	wireSize    int            // its bytes as the API's limits count them
	id          aggregate.Unit // Number 0: no identity

	attempts int // calls that carried it
	unknown  int // attempts without an answer
	setbacks int // failed attempts that count for the back-off
	// suspicion counts the calls with this unit that failed as a whole. Each halves the size of the
	// calls that may carry it, so that a record (or a size) that makes calls fail is soon alone.
	suspicion int
	cause     error // the error of the last failed attempt

	// firstSent is when the unit was first put into a call, in this run or an earlier one. lastSent
	// is at or after the end of its last attempt. Both are by the core's clock.
	firstSent, lastSent time.Time
	// since is the last Date of the stream before its first attempt, and sinceSeen is when that was
	// seen; zero if none was. from is the time of the stream at which a look-up begins if it has no
	// better place; zero: at the oldest record.
	since, sinceSeen, from time.Time

	undated    bool  // from an earlier run; dateUnit has not set firstSent and lastSent yet
	journalled bool  // Journal.Frozen was called with it, with or without success
	kept       bool  // Journal.Frozen has stored it
	refusal    error // Journal.Frozen has refused it; it is never sent
	lookUpDue  bool  // its horizon has passed; it is to be looked up

	older, newer *unit // links of numbers
}

// wrapped reports whether the unit is an aggregate with an identity.
func (u *unit) wrapped() bool { return u.id.Number > 0 }

// result returns the result of the record e at index i of the unit. v is the verdict on the unit,
// which the stream has stored.
func (u *unit) result(v verdict, e *entry, i int) Result {
	r := Result{
		ShardID: v.shard, Attempts: e.tried + u.attempts, Unknown: u.unknown,
	}
	r.Position.Sequence = v.sequence
	if u.wrapped() {
		r.Position.Sub = int64(v.sub + i)
	}
	return r
}

// numbers assigns numbers to the units of a group, and knows the lowest unsettled one.
type numbers struct {
	id             aggregate.ProducerID
	unordered      bool // for OrderNone: the units have no order
	last           uint64
	oldest, newest *unit // the list of unsettled units, in the order of their numbers
}

// low returns the lowest unsettled number, or the next one if all are settled.
func (n *numbers) low() uint64 {
	if n.oldest != nil {
		return n.oldest.id.Number
	}
	return n.last + 1
}

// room returns how many units may be frozen before the window is full.
func (n *numbers) room(window uint64) int { return int(n.low() + window - n.last) }

// next gives a unit its identity and adds it to the unsettled ones.
func (n *numbers) next(u *unit) aggregate.Unit {
	low := n.low()
	n.last++
	u.id = aggregate.Unit{Producer: n.id, Number: n.last, Low: low, Unordered: n.unordered}
	if u.older = n.newest; u.older == nil {
		n.oldest = u
	} else {
		u.older.newer = u
	}
	n.newest = u
	return u.id
}

// settle removes a unit of the group that has ended. It ignores units of other producers.
func (n *numbers) settle(u *unit) {
	if !u.wrapped() || u.id.Producer != n.id {
		return
	}
	if u.older == nil {
		n.oldest = u.newer
	} else {
		u.older.newer = u.newer
	}
	if u.newer == nil {
		n.newest = u.older
	} else {
		u.newer.older = u.older
	}
	u.older, u.newer = nil, nil
}
