package sinktest

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/sink"
)

// source is a shard of an invented stream.
type source struct {
	shard   sink.Shard
	parents []*source
	stored  []stored
	items   []item
	// states holds the filter state of a reader behind each Kinesis record, and at the shard's
	// start and end. It depends only on the records before, so all readers agree.
	states map[runnel.Position][]byte

	number *big.Int // the newest record's
}

// stored is a Kinesis record.
type stored struct {
	last    runnel.Position // of its last user record
	key     string
	data    []byte
	arrival time.Time
	policy  filter // of an ordinary record
}

// item is a user record and the expected decision of the reader about it.
type item struct {
	record runnel.Record
	filter filter
}

type filter int

const (
	delivered filter = iota
	dropped          // as every reader drops a double
	doubtful         // some readers drop it and others do not: another version, another policy
)

var created = time.UnixMilli(1_700_000_000_123).UTC()

// newSource makes up an empty shard. Its numbers are sparse and grow in length on the way.
func newSource(rng *rand.Rand, id runnel.ShardID) *source {
	number := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(3+rng.IntN(53))), nil)
	number.Sub(number, big.NewInt(int64(rng.IntN(300))+1)) // 99…: soon gets one more digit
	return &source{
		shard: sink.Shard{Stream: "orders", Created: created, ID: id}, number: number,
	}
}

// put stores an ordinary record.
func (s *source) put(rng *rand.Rand, arrival time.Time, policy filter) {
	key, data := fmt.Sprintf("key-%d", rng.IntN(9)), newData(rng, len(s.items))
	s.store(rng, stored{key: key, data: data, arrival: arrival, policy: policy})
	s.item(0, key, data, policy)
}

// store gives the next Kinesis record its number. The items of its user records follow, and they
// move its last position.
func (s *source) store(rng *rand.Rand, record stored) {
	s.number.Add(s.number, big.NewInt(1+int64(rng.IntN(40))))
	record.last.Sequence = runnel.SequenceNumber(s.number.String())
	s.stored = append(s.stored, record)
}

// item adds a user record of the newest Kinesis record.
func (s *source) item(sub int, key string, data []byte, policy filter) {
	record := &s.stored[len(s.stored)-1]
	record.last.Sub = int64(sub)
	s.items = append(s.items, item{filter: policy, record: runnel.Record{
		PartitionKey: key, Data: data, ShardID: s.shard.ID, Position: record.last,
		ArrivalTime: record.arrival,
	}})
}

func newData(rng *rand.Rand, n int) []byte {
	switch rng.IntN(8) {
	case 0:
		return []byte{}
	case 1:
		return []byte{0xff, 0x00, '\n', byte(n)}
	case 2:
		return fmt.Appendf(nil, "line %d\n", n)
	default:
		return fmt.Appendf(nil, `{"id":%d,"text":"%0*d"}`, n, rng.IntN(60), n)
	}
}

// from returns the index of the first Kinesis record behind a position.
func (s *source) from(at runnel.Position) int {
	for i := range s.stored {
		if at.Less(s.stored[i].last) {
			return i
		}
	}
	return len(s.stored)
}

// finish has a reader read the shard after its parents are finished, and keeps the reader's states.
func (s *source) finish() error {
	first := sink.Committed{}
	for _, parent := range s.parents {
		first.Parents = append(first.Parents, parent.states[runnel.End()])
	}
	reader, err := newReader(first)
	if err != nil {
		return err
	}
	s.states = map[runnel.Position][]byte{runnel.Start(): reader.state()}
	for i := range s.stored {
		reader.read(nil, s, i, i+1)
		s.states[s.stored[i].last] = reader.state()
	}
	s.states[runnel.End()] = reader.state()
	return nil
}
