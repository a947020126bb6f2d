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
	mark   uint64 // the caller's name for it; see PutMarked
	number uint64 // counts the records that the producer took, from 1
	taken  time.Time
	lane   *lane
	next   *entry // behind it in its lane's queue, or in its unit
	tried  int    // calls that carried it in units that were given another number

	wide   int          // its size in a unit of its own, or as it is
	asIs   bool         // it has no identity: OrderPlain, an aggregate, or too large for one
	group  uint8        // of its hash key
	alone  bool         // it is to have a unit of its own, since one of its unit was refused
	hash   keyspace.Key // of its keys, once it is known
	hashed bool

	resumed bool // it came with Config.Resume, and holds no room in the buffer

	used func() // of Config.Keys; nil if it gave no key

	older, newer *entry // in ages

	// One of the two is set by the shell, and called with the result.
	future *Future
	done   func(Result)
}

// size is the room that a record takes in the buffer: its data and its partition key.
func (e *entry) size() int { return len(e.record.Data) + len(e.record.PartitionKey) }

// makeHash sets the record's hash key.
func (e *entry) makeHash() { e.hash, e.hashed = e.key().hashKey(), true }

// key names the record's lane.
func (e *entry) key() laneKey { return laneKey{e.record.PartitionKey, e.record.ExplicitHashKey} }

// laneKey names a lane. Hash keys are in canonical form, so equal text is equal hash.
type laneKey struct {
	partition, hash string
}

type laneState uint8

const (
	idle      laneState = iota // holds nothing, or nothing was decided about it yet
	ready                      // in core.ready: its head can be sent
	flying                     // its unit is in a call
	held                       // in core.held: its unit waits for the next attempt
	blocked                    // in core.groups: its group's window has no room for its unit
	parked                     // in its shard's pace: the shard is slowed down
	doubted                    // in core.doubted: its unit is to be looked up
	searching                  // its unit is being looked up
	unmapped                   // it is core.chart.waiting: the shards are not known yet
)

// lane is the records of one partition key and explicit hash key, in the order of put.
type lane struct {
	key         laneKey
	state       laneState
	unit        unit   // the front of the lane, once it is frozen
	resumed     []unit // behind it, of earlier runs
	first, last *entry // what follows, not sent yet
	backlog     int    // the wide of that, in a queue

	queue   bool // of what is to be packed for one shard; it has no unit
	carrier bool // of one packed unit; it has no queue

	hash   keyspace.Key // of the keys, once it was wanted
	hashed bool

	index   int       // in the heap that it is in
	place   uint64    // ready: the number of its head when it became so
	since   time.Time // ready: when that was taken
	counted int       // ready: the bytes counted for it
	behind  *lane     // ready: the next in the queue
	due     time.Time // held: when the next attempt may be made
	cut     bool      // held: because a call failed as a whole
	swept   uint64    // the last sweep that saw it
}

func (l *lane) push(e *entry) {
	if l.first == nil {
		l.first = e
	} else {
		l.last.next = e
	}
	l.last = e
	l.backlog += e.wide
}

func (l *lane) pop() *entry {
	e := l.first
	l.first, e.next = e.next, nil
	l.backlog -= e.wide
	if l.first == nil {
		l.last = nil
	}
	return e
}

// cutQueue takes a unit's records out of the lane's queue.
func (l *lane) cutQueue(u *unit) {
	last := u.last
	l.first, last.next = last.next, nil
	if l.first == nil {
		l.last = nil
	}
}

func (l *lane) empty() bool { return l.unit.first == nil && l.first == nil }

// head is the oldest record of the lane, the only one that may be sent. This is the rule
// "failed before newer": a unit that was frozen and has not landed goes before the queue.
func (l *lane) head() *entry {
	if l.unit.first != nil {
		return l.unit.first
	}
	return l.first
}

// size is what the API's limits count of the lane's unit, or, if none is frozen, of the least
// that it will hold.
func (l *lane) size() int {
	if l.unit.first != nil {
		return l.unit.wide
	}
	return l.first.wide
}

// launch puts the frozen unit into a call. From here until the call's outcome the lane is
// flying, and nothing else of it is sent: the rule "one of a lane in flight".
func (l *lane) launch() {
	l.unit.attempts++
	l.state = flying
}

// hashKey is what decides the lane's shard.
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

// readyLanes is the lanes whose head can be sent, the oldest head first. So nothing is
// overtaken by what was taken after it, but for what has to wait for its own lane: a cold key
// goes before the backlog of a hot one that is newer, and a hot key, whose head tends to be
// old, is not kept waiting between its round trips.
//
// Most lanes become ready by a put, and their heads are then the newest: those stand in a
// queue, in order without more ado. What comes back (lanes that landed, retries) is in a heap.
type readyLanes struct {
	first, last *lane // the queue
	back        laneHeap
	count       int
	bytes       int // of the heads, as they were when the lanes became ready
}

// push takes a lane. fresh tells that its head is the newest record of all.
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

// counts is what a lane brings to what is ready.
func (l *lane) counts() int {
	if l.queue {
		return l.backlog
	}
	return l.size()
}

// requeue puts a queue among the ready lanes, or to its place there. It reports whether the queue
// is there.
func (r *readyLanes) requeue(l *lane) bool {
	switch l.state {
	case idle:
		r.push(l, false)
	case ready:
		r.update(l)
	case flying, held, blocked, parked, doubted, searching, unmapped:
		return false
	}
	return true
}

// update takes in that a queue, which is in the heap, has changed.
func (r *readyLanes) update(l *lane) {
	r.bytes += l.backlog - l.counted
	l.counted = l.backlog
	if l.place != l.first.number {
		l.place, l.since = l.first.number, l.first.taken
		heap.Fix(&r.back, l.index)
	}
}

// peek returns the lane that pop would, or nil.
func (r *readyLanes) peek() *lane {
	if len(r.back.lanes) == 0 {
		return r.first
	}
	if back := r.back.lanes[0]; r.first == nil || back.place < r.first.place {
		return back
	}
	return r.first
}

// pop takes out the lane with the oldest head. There is one.
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

// laneHeap is a heap.Interface of *lane.
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
