package producer

import (
	"cmp"
	"slices"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/keyspace"
)

// nonePacking packs records of many keys into unordered units, each a Kinesis record for one shard.
// Records wait in a queue for each shard, in the order of put. A queue has no unit: a carrier, a
// lane made for one unit, has it, so any number of a queue's units can be in flight.
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

// examine hashes the keys of every record: the queue depends on the hash key.
func (n *nonePacking) examine(e *entry) {
	examineUnit(n, e)
	e.makeHash()
}

func (n *nonePacking) find(e *entry) *lane {
	if e.asIs {
		return nil // it has a lane to itself
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

// queueOf returns the queue of the shard that a hash key belongs to, or nil if there is none.
func (n *nonePacking) queueOf(hash keyspace.Key) *lane {
	shard, known := n.chart.predict(hash)
	if !known {
		return &n.chart.waiting
	}
	return n.lanes[laneKey{hash: string(shard)}]
}

// newQueue makes the queue of the shard that a hash key belongs to.
func (n *nonePacking) newQueue(hash keyspace.Key) *lane {
	shard, _ := n.chart.predict(hash)
	l := &lane{key: laneKey{hash: string(shard)}, queue: true}
	n.lanes[l.key] = l
	return l
}

// rejoin returns the queue of a record that was in a queue before.
func (n *nonePacking) rejoin(e *entry) *lane {
	l := n.queueOf(e.hash)
	if l == nil {
		l = n.newQueue(e.hash)
	}
	e.lane = l
	return l
}

// takeBack returns the unit's records to the queues of the shards that they belong to now. Records
// in a queue are in the order of put.
func (n *nonePacking) takeBack(l *lane) {
	behind := map[*lane]*entry{} // the last record inserted
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

// recharted gives all records that wait to the queues of the shards that are open now. An empty
// queue goes when its turn comes.
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

// insert puts a record into a queue by its number. It belongs behind after, if that is not nil.
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
	l.backlog += e.wide
}
