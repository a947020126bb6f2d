package producer

import (
	"container/heap"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/aggregate"
	"github.com/runnel-stream/runnel/keyspace"
)

// entry is one record that was taken and has no result yet.
type entry struct {
	record runnel.Record
	mark   uint64 // the caller's name for the record; see PutMarked
	number uint64 // the position among the records that the producer took, from 1
	taken  time.Time
	lane   *lane
	next   *entry // the next one in its lane's queue, or in its unit
	tried  int    // calls that carried it in earlier units

	wireSize int          // its most bytes in a Kinesis record of its own
	asIs     bool         // it gets no identity: OrderPlain, an aggregate, or too large for one
	group    uint8        // the group of its hash key
	alone    bool         // it needs a unit of its own: its unit had an invalid record
	hash     keyspace.Key // the hash key; valid if hashed
	hashed   bool

	resumed bool // it came with Config.Resume and holds no room in the buffer

	used func() // the done of Config.Keys; nil if it assigned no key

	older, newer *entry // links of ages

	// The shell sets at most one of the two, which receives the result.
	future *Future
	done   func(Result)
}

// size returns the room that the record takes in the buffer: its data and its partition key.
func (e *entry) size() int { return len(e.record.Data) + len(e.record.PartitionKey) }

// makeHash computes the record's hash key.
func (e *entry) makeHash() { e.hash, e.hashed = e.key().hashKey(), true }

// key returns the key of the record's lane.
func (e *entry) key() laneKey { return laneKey{e.record.PartitionKey, e.record.ExplicitHashKey} }

// laneKey identifies a lane. Explicit hash keys are in canonical form, so equal hash keys have
// equal texts.
type laneKey struct {
	partition, hash string
}

// laneState is the state of a lane. The usual cycle is
//
//	idle --put--> ready --launch--> flying --land--> ready, or idle if the lane is empty
//
// After a failed attempt the lane is held until the next one. launch sets a ready lane aside if its
// head cannot be sent: blocked until its group has a number for it, parked until its shard may be
// written to again, or, if its unit's horizon has passed and an attempt is unknown, held until the
// unit can be looked up, then toLookUp, and searching during the look-up.
type laneState uint8

const (
	idle      laneState = iota // it is new, or it has no record
	ready                      // in core.ready: its head can be sent
	flying                     // its unit is in a call
	held                       // in core.held: its unit waits for its next attempt
	blocked                    // in core.groups: the window of its group is full
	parked                     // in the pace of its shard, which is slowed down
	toLookUp                   // in core.toLookUp: its unit waits for a look-up
	searching                  // a look-up for its unit is under way
	unmapped                   // it is core.chart.waiting: the shards are not known yet
)

// lane holds the records of one partition key and explicit hash key, in the order of put. OrderNone
// uses two other kinds of lane: a queue for each shard, and carriers (see nonePacking).
type lane struct {
	key         laneKey
	state       laneState
	unit        unit   // the unit being sent; the front of the lane
	resumed     []unit // further units of earlier runs, which follow unit
	first, last *entry // the records behind these, not sent yet
	backlog     int    // the sum of their wireSize

	queue   bool // a queue of OrderNone: records for one shard, and no unit
	carrier bool // a carrier of OrderNone: one unit, and no further records

	hash   keyspace.Key // the hash key of the lane's keys; valid if hashed
	hashed bool

	index   int       // the position in its heap
	place   uint64    // ready: the number of its head, by which ready lanes are ordered
	since   time.Time // ready: when its head was taken
	counted int       // ready: the bytes counted for it in readyLanes.bytes
	behind  *lane     // ready: the next in readyLanes' queue
	due     time.Time // held: when the next attempt may be made
	cut     bool      // held: the call failed as a whole
	swept   uint64    // the last sweep that visited it
}

func (l *lane) push(e *entry) {
	if l.first == nil {
		l.first = e
	} else {
		l.last.next = e
	}
	l.last = e
	l.backlog += e.wireSize
}

func (l *lane) pop() *entry {
	e := l.first
	l.first, e.next = e.next, nil
	l.backlog -= e.wireSize
	if l.first == nil {
		l.last = nil
	}
	return e
}

// cutQueue removes a unit's records from the front of the queue.
func (l *lane) cutQueue(u *unit) {
	last := u.last
	l.first, last.next = last.next, nil
	if l.first == nil {
		l.last = nil
	}
}

func (l *lane) empty() bool { return l.unit.first == nil && l.first == nil }

// head returns the oldest record of the lane, the only one that may be sent. It implements the rule
// "failed before newer": a frozen unit that has not landed goes before the queue.
func (l *lane) head() *entry {
	if l.unit.first != nil {
		return l.unit.first
	}
	return l.first
}

// size returns the bytes of the lane's unit as the API's limits count them. If no unit is frozen,
// it returns the least size of the next one: that of its first record.
func (l *lane) size() int {
	if l.unit.first != nil {
		return l.unit.wireSize
	}
	return l.first.wireSize
}

// launch marks the lane's unit as in a call. Until the call's outcome the lane is flying, and
// nothing else of it is sent: the rule "one in flight".
func (l *lane) launch() {
	l.unit.attempts++
	l.state = flying
}

// hashKey returns the hash key that decides the lane's shard: of its keys, or for a queue of its
// first record.
func (l *lane) hashKey() keyspace.Key {
	if l.queue {
		return l.first.hash
	}
	if !l.hashed {
		l.hash, l.hashed = l.key.hashKey(), true
	}
	return l.hash
}

func (k laneKey) hashKey() keyspace.Key {
	return aggregate.Record{PartitionKey: k.partition, ExplicitHashKey: k.hash}.Hash()
}

// readyLanes holds the lanes with a head that can be sent, the oldest head first. So a record waits
// for no younger record, except in its own lane: a quiet lane goes before the newer backlog of a
// busy one. A busy lane does not wait between its round trips, because its head tends to be old.
//
// Most lanes become ready by a put. Their heads are then the newest of all, so a simple queue keeps
// them in order. Lanes that become ready again (after a landing or a wait) are in a heap.
type readyLanes struct {
	first, last *lane // the queue
	back        laneHeap
	count       int
	bytes       int // the sum of the lanes' counted
}

// push adds a lane. fresh means that its head is the newest record of all.
func (r *readyLanes) push(l *lane, fresh bool) {
	head := l.head()
	l.state = ready
	l.place, l.since, l.counted = head.number, head.taken, l.counts()
	r.count++
	r.bytes += l.counted
	if !fresh {
		heap.Push(&r.back, l)
		return
	}
	if r.first == nil {
		r.first = l
	} else {
		r.last.behind = l
	}
	r.last = l
}

// counts returns the bytes that a lane adds to readyLanes.bytes.
func (l *lane) counts() int {
	if l.queue {
		return l.backlog
	}
	return l.size()
}

// requeue adds a queue to the ready lanes, or updates its place there after a change of its
// records. It returns false if the queue is in another state.
func (r *readyLanes) requeue(l *lane) bool {
	switch l.state {
	case idle:
		r.push(l, false)
	case ready:
		r.update(l)
	case flying, held, blocked, parked, toLookUp, searching, unmapped:
		return false
	}
	return true
}

// update adjusts the place and the bytes of a queue in the heap after its records have changed.
func (r *readyLanes) update(l *lane) {
	r.bytes += l.backlog - l.counted
	l.counted = l.backlog
	if l.place != l.first.number {
		l.place, l.since = l.first.number, l.first.taken
		heap.Fix(&r.back, l.index)
	}
}

// peek returns the lane that pop would remove, or nil.
func (r *readyLanes) peek() *lane {
	if len(r.back.lanes) == 0 {
		return r.first
	}
	if back := r.back.lanes[0]; r.first == nil || back.place < r.first.place {
		return back
	}
	return r.first
}

// pop removes the lane with the oldest head. There must be one.
func (r *readyLanes) pop() *lane {
	l := r.peek()
	r.count--
	r.bytes -= l.counted
	if l != r.first {
		heap.Pop(&r.back)
		return l
	}
	if r.first, l.behind = l.behind, nil; r.first == nil {
		r.last = nil
	}
	return l
}

// laneHeap is a heap.Interface of lanes.
type laneHeap struct {
	lanes  []*lane
	before func(a, b *lane) bool
}

func byPlace(a, b *lane) bool { return a.place < b.place }
func byDue(a, b *lane) bool   { return a.due.Before(b.due) }

func (h *laneHeap) Len() int           { return len(h.lanes) }
func (h *laneHeap) Less(i, j int) bool { return h.before(h.lanes[i], h.lanes[j]) }

func (h *laneHeap) Swap(i, j int) {
	h.lanes[i], h.lanes[j] = h.lanes[j], h.lanes[i]
	h.lanes[i].index, h.lanes[j].index = i, j
}

func (h *laneHeap) Push(x any) {
	l := x.(*lane)
	l.index = len(h.lanes)
	h.lanes = append(h.lanes, l)
}

func (h *laneHeap) Pop() any {
	end := len(h.lanes) - 1
	l := h.lanes[end]
	h.lanes[end] = nil
	h.lanes = h.lanes[:end]
	return l
}
