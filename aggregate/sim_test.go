package aggregate_test

import (
	"container/heap"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/runnel-stream/runnel/aggregate"
	"github.com/runnel-stream/runnel/keyspace"
)

// world is a stream with its producers in virtual time, all drawn from one seed: answers are
// lost, records are stored long after their retries, units are given up, shards split and
// merge. The tests then read the shards as a consumer does.
type world struct {
	random    *rand.Rand
	now       int64 // milliseconds
	events    events
	shards    []*simShard
	producers []*simProducer
	guess     bool // the control: Low is always Number, as if all before were settled
	end       int64
	ahead     int64 // how far the server's clock has stepped forward
}

type simShard struct {
	hashes  keyspace.Range
	parents []int
	closed  bool
	log     []stored
}

type stored struct {
	arrival int64
	data    []byte
}

type event struct {
	at    int64
	order int
	do    func()
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].order < e[j].order
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

const (
	simH       = int64(aggregate.H / time.Millisecond)
	simTimeout = 1000
	simEpoch   = 1_700_000_000_000
)

// after does something later; order keeps the heap stable.
func (w *world) after(delay int64, do func()) {
	heap.Push(&w.events, event{w.now + delay, len(w.events) + w.random.IntN(1000), do})
}

func (w *world) chance(percent int) bool { return w.random.IntN(100) < percent }

// between draws a delay in [low, high).
func (w *world) between(low, high int64) int64 { return low + w.random.Int64N(high-low) }

// simulate runs a world to its end.
func simulate(seed uint64, guess bool) *world {
	w := &world{random: rand.New(rand.NewPCG(seed, 26)), now: simEpoch, guess: guess}
	for _, r := range keyspace.Uniform(1 + w.random.IntN(4)) {
		w.shards = append(w.shards, &simShard{hashes: r})
	}
	for range 1 + w.random.IntN(3) {
		w.addProducer()
	}
	w.reshardLater()
	if w.chance(50) {
		w.stepClock()
	}
	for len(w.events) > 0 {
		e := heap.Pop(&w.events).(event)
		w.now = e.at
		e.do()
	}
	return w
}

func (w *world) reshardLater() {
	w.after(w.between(1000, 30_000), func() {
		if w.now > w.end {
			return
		}
		w.reshard()
		w.reshardLater()
	})
}

// stepClock has the server's clock step forward, by up to a day, once to three times.
func (w *world) stepClock() {
	for range 1 + w.random.IntN(3) {
		w.after(w.between(0, 90_000), func() { w.ahead += w.between(0, 288*simH) })
	}
}

// reshard splits a shard or merges two.
func (w *world) reshard() {
	open := w.open()
	i := open[w.random.IntN(len(open))]
	s := w.shards[i]
	if w.chance(50) && len(open) < 8 {
		s.closed = true
		low, high := s.hashes.SplitAt(s.hashes.Middle())
		w.shards = append(w.shards, &simShard{hashes: low, parents: []int{i}}, &simShard{hashes: high, parents: []int{i}})
		return
	}
	for _, j := range open {
		if other := w.shards[j]; s.hashes.Precedes(other.hashes) {
			s.closed, other.closed = true, true
			w.shards = append(w.shards, &simShard{hashes: s.hashes.Join(other.hashes), parents: []int{i, j}})
			return
		}
	}
}

func (w *world) open() (open []int) {
	for i, s := range w.shards {
		if !s.closed {
			open = append(open, i)
		}
	}
	return open
}

// store appends a record to the shard that has its hash now, and returns the shard.
func (w *world) store(hash keyspace.Key, data []byte) *simShard {
	for _, s := range w.shards {
		if !s.closed && s.hashes.Contains(hash) {
			s.log = append(s.log, stored{w.now + w.ahead, data})
			return s
		}
	}
	panic("no shard has the hash")
}

// simProducer keeps one unit of a lane in flight, as the format asks. In mode shard it packs
// units of many lanes into one aggregate, for a shard that may be gone.
type simProducer struct {
	w         *world
	id        aggregate.ProducerID
	lanes     []*simLane
	number    uint64
	unsettled map[uint64]bool
	shard     bool
	unordered bool
}

type simLane struct {
	p       *simProducer
	key     string
	hashKey string
	waiting []int // sequence numbers of records
	put     int
	unit    *simUnit
	acked   []int // records
	gone    []int // records of units that were given up
}

type simUnit struct {
	lane    *simLane
	number  uint64
	records []aggregate.Record // the first one is tagged
	content []int
}

func (w *world) addProducer() {
	p := &simProducer{w: w, unsettled: map[uint64]bool{}, shard: w.chance(40), unordered: w.chance(15)}
	for i := range p.id {
		p.id[i] = byte(w.random.Uint32())
	}
	w.producers = append(w.producers, p)
	// Half of the worlds pause for longer than 3H: their units have no copy after it.
	pause, at := int64(0), int64(0)
	if w.chance(50) {
		pause = w.between(3*simH, 6*simH)
	}
	records := 10 + w.random.IntN(30)
	for i := range 1 + w.random.IntN(16) {
		l := &simLane{p: p, key: "key-" + strconv.Itoa(i)}
		if w.chance(30) {
			l.hashKey = keyspace.Key{Hi: w.random.Uint64(), Lo: w.random.Uint64()}.String()
		}
		p.lanes = append(p.lanes, l)
		at = 0
		for n := range records {
			if at += w.between(1, 2000); n == records/2 {
				at += pause
			}
			w.after(at, func() { l.waiting, l.put = append(l.waiting, l.put), l.put+1; p.work() })
			w.end = max(w.end, w.now+at)
		}
	}
}

// work freezes units for idle lanes and sends them, one by one or as one.
func (p *simProducer) work() {
	var pack []*simUnit
	for _, l := range p.lanes {
		if l.unit == nil && len(l.waiting) > 0 {
			pack = append(pack, l.freeze())
		}
	}
	p.send(pack)
}

func (l *simLane) freeze() *simUnit {
	p := l.p
	p.number++
	p.unsettled[p.number] = true
	low := p.number
	for n := range p.unsettled {
		low = min(low, n)
	}
	if p.w.guess {
		low = p.number
	}
	size := min(len(l.waiting), 1+p.w.random.IntN(5))
	u := &simUnit{lane: l, number: p.number, content: l.waiting[:size:size]}
	l.waiting, l.unit = l.waiting[size:], u
	for i, n := range u.content {
		r := aggregate.Record{PartitionKey: l.key, ExplicitHashKey: l.hashKey, Data: strconv.AppendInt(nil, int64(n), 10)}
		if i == 0 {
			unit := aggregate.Unit{Producer: p.id, Number: u.number, Low: low, Unordered: p.unordered}
			r.Tags = unit.AppendTo(nil)
		}
		u.records = append(u.records, r)
	}
	return u
}

// settle ends a unit: acknowledged, or given up and reported.
func (u *simUnit) settle(acked bool) {
	l := u.lane
	if l.unit != u {
		return // an answer that came after the unit was settled
	}
	delete(l.p.unsettled, u.number)
	l.unit = nil
	if acked {
		l.acked = append(l.acked, u.content...)
	} else {
		l.gone = append(l.gone, u.content...)
	}
}

// send packs units and sends them: in mode shard all in one, whatever their hashes, as a
// producer does that has an old map of the shards.
func (p *simProducer) send(units []*simUnit) {
	if !p.shard {
		for _, u := range units {
			p.sendPack([]*simUnit{u})
		}
	} else if len(units) > 0 {
		slices.SortFunc(units, func(a, b *simUnit) int { return a.records[0].Hash().Compare(b.records[0].Hash()) })
		size := 1 + p.w.random.IntN(3)
		for pack := range slices.Chunk(units, size) {
			p.sendPack(slices.Clone(pack))
		}
	}
}

func (p *simProducer) sendPack(units []*simUnit) {
	var e aggregate.Encoder
	for _, u := range units {
		for _, r := range u.records {
			if err := e.Add(r); err != nil {
				panic(err)
			}
		}
	}
	a := &attempts{
		p: p, units: units, data: e.Seal(nil), hash: units[0].records[0].Hash(),
		first: p.w.now, most: 1 + p.w.random.IntN(8),
	}
	a.try()
}

// attempts is one aggregate on its way, sent until it is answered or given up.
type attempts struct {
	p       *simProducer
	units   []*simUnit
	data    []byte
	hash    keyspace.Key
	first   int64
	n, most int
	done    bool
}

func (a *attempts) try() {
	w := a.p.w
	if a.done {
		return
	}
	if a.n == a.most || w.now > a.first+simH {
		a.done = true
		for _, u := range a.units {
			u.settle(false)
		}
		a.p.work()
		return
	}
	a.n++
	commit := func(answered bool) func() {
		return func() {
			s := w.store(a.hash, a.data)
			if answered {
				w.after(w.between(1, 50), func() { a.answer(s) })
			}
		}
	}
	wait := simTimeout + w.between(10, 500)
	switch draw := w.random.IntN(100); {
	case draw < 50:
		w.after(w.between(1, 100), commit(true))
	case draw < 65: // stored, no answer
		w.after(w.between(1, 900), commit(false))
	case draw < 80: // stored after its own retry, and its answer is late or lost
		w.after(w.between(simTimeout, 20*simTimeout), commit(w.chance(20)))
	case draw < 83: // stored as late as can be
		w.after(w.between(1, 2*simH), commit(false))
	case draw < 93: // throttled
		wait = w.between(10, 500)
	default: // lost on the way
	}
	w.after(wait, a.try)
}

// answer acknowledges the units, or finds them void and packs them anew under their numbers.
func (a *attempts) answer(s *simShard) {
	if a.done {
		return
	}
	a.done = true
	void := slices.ContainsFunc(a.units, func(u *simUnit) bool { return !s.hashes.Contains(u.records[0].Hash()) })
	for _, u := range a.units {
		if !void {
			u.settle(true)
		}
	}
	if void {
		for _, u := range a.units {
			a.p.sendPack([]*simUnit{u})
		}
	}
	a.p.work()
}
