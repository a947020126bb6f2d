package producer

import (
	"time"

	"github.com/runnel-stream/runnel/aggregate"
)

// unit is what is sent of a lane at a time: one Kinesis record, with one or more of the lane's
// records in it. It is frozen when it is first sent, and every attempt sends the same bytes.
type unit struct {
	first, last *entry // nil: nothing is frozen
	count       int
	data        []byte         // in OrderShard only for the journal, and of what is not wrapped
	wide        int            // what the API's limits count of it
	id          aggregate.Unit // without a Number, it has no identity

	attempts int // calls that carried it
	unknown  int // of these, without an answer
	setbacks int // failed attempts, which double the wait for the next one
	// suspicion counts the calls that failed as a whole with this unit aboard. Each halves
	// the calls that may carry it from then on, so that a record (or a size) that makes calls
	// fail is soon alone.
	suspicion int
	cause     error // of the last failed attempt

	// firstSent is when it first went into a call, in this run or an earlier one; lastSent is
	// not before its last attempt ended. For both see clock.
	firstSent, lastSent time.Time
	// since is the stream's time that was seen before its first send, and sinceSeen when it
	// was; zero: none was seen. A look-up begins at from, in the stream's time too, unless it
	// knows better; zero: at the oldest record.
	since, sinceSeen, from time.Time

	undated    bool // of an earlier run; firstSent and lastSent are not known yet
	journalled bool // Journal.Frozen was called with it, with or without success
	kept       bool // Journal.Frozen has kept it
	doomed     bool // sent for long enough: it is to be looked up

	older, newer *unit // in numbers
}

// wrapped reports whether the unit is an aggregate with an identity.
func (u *unit) wrapped() bool { return u.id.Number > 0 }

// result is that of the unit's record at i, which the stream stored at where.
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

// numbers gives the units of a group their numbers, and knows the lowest that is not settled.
type numbers struct {
	id             aggregate.ProducerID
	unordered      bool // units of one lane may stand in any order
	last           uint64
	oldest, newest *unit // not settled, in the order of their numbers
}

// low is the lowest number that is not settled, or the next one if all are.
func (n *numbers) low() uint64 {
	if n.oldest != nil {
		return n.oldest.id.Number
	}
	return n.last + 1
}

// room is how many units may be frozen before the window is full.
func (n *numbers) room(window uint64) int { return int(n.low() + window - n.last) }

// next returns the identity of the unit that is about to be frozen, and takes it in.
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

// settle takes out a unit of the group that has an end.
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
