package producer

import (
	"cmp"
	"slices"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/keyspace"
)

// nonePacking packs records of many keys into unordered units, each in a Kinesis record for one
// shard. Records wait in a lane for each shard, called a queue, in the order of put. A queue has no
// unit of its own: each unit gets a new lane, called its carrier, so any number of a queue's units
// can be in flight.
type nonePacking struct {
	separate
	lanes  map[laneKey]*lane
	ready  *readyLanes
	chart  *chart
	filler filler
}

func (*nonePacking) size(r *runnel.Record) int {
	return unitSize(r, len(outerKey), longestUnordered)
}

// examine computes the hash key of every record, because it decides the queue.
func (n *nonePacking) examine(e *entry) {
	examineUnit(n, e)
	e.makeHash()
}

func (n *nonePacking) find(e *entry) *lane {
	if e.asIs {
		return nil // it gets a lane of its own
	}
	return n.queueOf(e.hash)
}

func (n *nonePacking) enter(e *entry) *lane {
	if e.asIs {
		return &lane{key: e.key(), hash: e.hash, hashed: true}
	}
	return n.newQueue(e.hash)
}

func (*nonePacking) adopt(key laneKey, _ *entry) *lane { return &lane{key: key, carrier: true} }

// queueOf returns the queue of a hash key's shard, or nil if there is none.
func (n *nonePacking) queueOf(hash keyspace.Key) *lane {
	shard, known := n.chart.predict(hash)
	if !known {
		return &n.chart.waiting
	}
	return n.lanes[laneKey{hash: string(shard)}]
}

// newQueue makes the queue of a hash key's shard.
func (n *nonePacking) newQueue(hash keyspace.Key) *lane {
	shard, _ := n.chart.predict(hash)
	l := &lane{key: laneKey{hash: string(shard)}, queue: true}
	n.lanes[l.key] = l
	return l
}

// rejoin returns the present queue for a record that was in a queue before.
func (n *nonePacking) rejoin(e *entry) *lane {
	l := n.queueOf(e.hash)
	if l == nil {
		l = n.newQueue(e.hash)
	}
	e.lane = l
	return l
}

// takeBack returns the unit's records to the present queues of their shards, each at its place in
// the order of put.
func (n *nonePacking) takeBack(l *lane) {
	behind := map[*lane]*entry{} // for each queue the last record inserted
	for e := l.unit.first; e != nil; {
		next := e.next
		e.next = nil
		queue := n.rejoin(e)
		queue.insert(behind[queue], e)
		behind[queue] = e
		e = next
	}
	for queue := range behind {
		n.ready.requeue(queue)
	}
}

// recharted moves all waiting records to the queues of the open shards. An empty queue is removed
// when its turn comes.
func (n *nonePacking) recharted() {
	var all []*entry
	drain := func(l *lane) {
		for l.first != nil {
			all = append(all, l.pop())
		}
	}
	drain(&n.chart.waiting)
	for _, l := range n.lanes {
		drain(l)
	}
	slices.SortFunc(all, func(a, b *entry) int { return cmp.Compare(a.number, b.number) })
	touched := map[*lane]bool{}
	for _, e := range all {
		l := n.rejoin(e)
		l.push(e)
		touched[l] = true
	}
	for l := range touched {
		n.ready.requeue(l)
	}
}

func (*nonePacking) carrier(l *lane) *lane {
	if !l.queue {
		return l
	}
	hash := l.first.hash
	key := laneKey{outerKey, hash.String()}
	return &lane{key: key, carrier: true, hash: hash, hashed: true}
}

func (n *nonePacking) fill(u *unit, most int) { n.filler.fill(u, most, len(outerKey), 0) }

func (n *nonePacking) judge(p *parcel, v verdict) verdict {
	u := &p.lanes[0].unit
	return n.chart.judgeIn(v, u.first.hash, func(within keyspace.Range) bool {
		for e := u.first; e != nil; e = e.next {
			if !within.Contains(e.hash) {
				return false
			}
		}
		return true
	})
}

// insert puts a record into a queue at the place of its number. If after is not nil, the record
// belongs behind it, and the search starts there.
func (l *lane) insert(after, e *entry) {
	at := &l.first
	if after != nil {
		at = &after.next
	}
	for *at != nil && (*at).number < e.number {
		at = &(*at).next
	}
	if e.next = *at; e.next == nil {
		l.last = e
	}
	*at = e
	l.backlog += e.wireSize
}
