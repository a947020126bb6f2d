package sinktest

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/aggregate"
	"github.com/runnel-stream/runnel/internal/shardid"
)

// paths maps a phase to the shard that has a lane's hash key: shard 0 splits into 2 and 3, then 3
// and 1 merge into 4. parents is the same tree, seen from the shards.
var (
	paths   = [][]int{{0, 2, 2}, {0, 3, 4}, {1, 1, 4}}
	parents = [][]int{{}, {}, {0}, {0}, {3, 1}}
)

const phases = 3

// stream is an invented stream under construction. Its producers keep one unit of a lane in flight
// and send units again. The doubles come late: behind newer records, in one Kinesis record with
// them, and in the children of the shard that has the first copy.
type stream struct {
	rng       *rand.Rand
	tree      []*source
	producers []*producer
	waiting   [][]unitCopy // for each shard: the units of its next aggregate
	encoder   aggregate.Encoder
	clock     time.Time
	phase     int
	step      int
	events    map[int][]func() // by step
}

type producer struct {
	id        aggregate.ProducerID
	unordered bool
	number    uint64
	open      map[uint64]bool // units that are not settled
	lanes     []*lane
}

type lane struct {
	key  string
	path int
	busy bool // it has a unit in flight
}

// unitCopy is one of the copies of a unit; the first one counts.
type unitCopy struct {
	records []aggregate.Record
	policy  filter
}

// newTree makes up a stream's shards, parents first; records is roughly their average number of
// user records. If filtered is set, readers drop ordinary records, and not all readers the same
// ones.
func newTree(rng *rand.Rand, name string, records int, filtered bool) ([]*source, error) {
	s := &stream{
		rng: rng, clock: created.Add(time.Minute), events: map[int][]func(){},
		waiting: make([][]unitCopy, len(parents)),
	}
	for n := range parents {
		shard := newSource(rng, runnel.ShardID(shardid.Of(uint32(n))))
		if name != "" {
			shard.shard.Stream = name
		}
		for _, parent := range parents[n] {
			shard.parents = append(shard.parents, s.tree[parent])
			shard.shard.Parents = append(shard.shard.Parents, s.tree[parent].shard.ID)
		}
		s.tree = append(s.tree, shard)
	}
	for n := range 3 {
		s.addProducer(n)
	}
	for s.phase = range phases {
		steps := rng.IntN(3*records/2 + 1)
		if rng.IntN(8) == 0 {
			steps = 0 // shards without a record hand on the known state, too
		}
		for range steps {
			if err := s.advance(filtered); err != nil {
				return nil, err
			}
		}
		for n := range s.tree {
			if err := s.pack(n); err != nil {
				return nil, err
			}
		}
	}
	for _, shard := range s.tree {
		if err := shard.finish(); err != nil {
			return nil, err
		}
	}
	return s.tree, nil
}

func (s *stream) addProducer(n int) {
	p := &producer{open: map[uint64]bool{}, unordered: n == 2}
	binary.BigEndian.PutUint64(p.id[:], s.rng.Uint64())
	for path := range paths {
		for i := range 2 {
			key := fmt.Sprintf("key-%d-%d-%d", n, path, i)
			p.lanes = append(p.lanes, &lane{key: key, path: path})
		}
	}
	s.producers = append(s.producers, p)
}

// advance makes one thing happen, and every event that was due by now.
func (s *stream) advance(filtered bool) error {
	s.step++
	s.clock = s.clock.Add(time.Duration(s.rng.IntN(3)) * time.Millisecond)
	for _, do := range s.events[s.step] {
		do()
	}
	delete(s.events, s.step)
	if s.rng.IntN(3) == 0 {
		policy := delivered
		if filtered && s.rng.IntN(3) == 0 {
			policy = dropped + filter(s.rng.IntN(2))
		}
		shard := paths[s.rng.IntN(len(paths))][s.phase]
		if err := s.pack(shard); err != nil {
			return err
		}
		s.tree[shard].put(s.rng, s.clock, policy)
	} else {
		s.freeze()
	}
	for n := range s.tree {
		if s.rng.IntN(2) == 0 {
			if err := s.pack(n); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *stream) later(steps int, do func()) {
	s.events[s.step+steps] = append(s.events[s.step+steps], do)
}

// freeze makes a unit, sends it, and perhaps sends it again. An aggregate of a producer without
// identity has no unit and no double. Copies that the stream's end cuts off were never stored.
func (s *stream) freeze() {
	p := s.producers[s.rng.IntN(len(s.producers))]
	l := p.lanes[s.rng.IntN(len(p.lanes))]
	if l.busy && !p.unordered {
		return
	}
	plain := s.rng.IntN(6) == 0
	sent := unitCopy{}
	for range 1 + s.rng.IntN(4) {
		sent.records = append(sent.records, aggregate.Record{
			PartitionKey: l.key, Data: newData(s.rng, s.rng.IntN(1e6)),
		})
	}
	shard := paths[l.path][s.phase]
	if plain { // such a record has no unit only at an aggregate's begin
		if len(s.waiting[shard]) == 0 {
			s.waiting[shard] = append(s.waiting[shard], sent)
		}
		return
	}
	p.number++
	number := p.number
	p.open[number], l.busy = true, true
	low := number
	for open := range p.open {
		low = min(low, open)
	}
	sent.records[0].Tags = aggregate.Unit{
		Producer: p.id, Number: number, Low: low, Unordered: p.unordered,
	}.AppendTo(nil)
	send := func(after int, what unitCopy) {
		s.later(after, func() {
			now := paths[l.path][s.phase]
			s.waiting[now] = append(s.waiting[now], what)
		})
	}
	first := 1 + s.rng.IntN(8) // younger units of other lanes may come before it
	send(first, sent)
	s.later(first+1+s.rng.IntN(6), func() {
		l.busy = false
		delete(p.open, number)
	})
	for range s.rng.IntN(4) {
		send(first+1+s.rng.IntN(30), unitCopy{records: sent.records, policy: dropped})
	}
}

// pack stores the waiting units of a shard as one Kinesis record.
func (s *stream) pack(n int) error {
	copies, shard := s.waiting[n], s.tree[n]
	if len(copies) == 0 {
		return nil
	}
	s.waiting[n] = nil
	s.encoder.Reset()
	for _, sent := range copies {
		for _, record := range sent.records {
			if err := s.encoder.Add(record); err != nil {
				return err
			}
		}
	}
	shard.store(s.rng, stored{
		key: copies[0].records[0].PartitionKey, data: s.encoder.Seal(nil), arrival: s.clock,
	})
	sub := 0
	for _, sent := range copies {
		for _, record := range sent.records {
			shard.item(sub, record.PartitionKey, record.Data, sent.policy)
			sub++
		}
	}
	return nil
}
