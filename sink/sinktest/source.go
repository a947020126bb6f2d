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
	shard sink.Shard
	items []item
}

// item is a record, and what the consumer's filter does with it.
type item struct {
	record runnel.Record
	filter filter
}

type filter int

const (
	delivered filter = iota
	dropped          // as every consumer drops a double
	doubtful         // some consumers drop it and others do not: another version, another policy
)

var created = time.UnixMilli(1_700_000_000_123).UTC()

// newSource makes up a shard: sparse numbers that grow in length on the way, aggregated
// records among them, data of every kind.
func newSource(rng *rand.Rand, id runnel.ShardID, count int) *source {
	s := &source{shard: sink.Shard{Stream: "orders", Created: created, ID: id}}
	number := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(3+rng.IntN(53))), nil)
	number.Sub(number, big.NewInt(int64(rng.IntN(20*count+1))+1)) // 99…: a digit more before long
	arrival := created.Add(time.Minute)
	for len(s.items) < count {
		number.Add(number, big.NewInt(1+int64(rng.IntN(40))))
		arrival = arrival.Add(time.Duration(rng.IntN(3)) * time.Millisecond)
		subs := 1
		if rng.IntN(8) == 0 {
			subs = min(1+rng.IntN(5), count-len(s.items))
		}
		for sub := range subs {
			s.items = append(s.items, item{record: runnel.Record{
				PartitionKey: fmt.Sprintf("key-%d", rng.IntN(9)),
				Data:         newData(rng, len(s.items)),
				ShardID:      id,
				Position: runnel.Position{
					Sequence: runnel.SequenceNumber(number.String()), Sub: int64(sub),
				},
				ArrivalTime: arrival,
			}})
		}
	}
	return s
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

// newTree makes up a stream: two shards, of which one splits, and two of the others merge.
func newTree(rng *rand.Rand, stream string, records int, filtered bool) []*source {
	var tree []*source
	for n, parents := range [][]int{{}, {}, {0}, {0}, {3, 1}} {
		id := runnel.ShardID(fmt.Sprintf("shardId-%012d", n))
		s := newSource(rng, id, rng.IntN(2*records+1))
		if stream != "" {
			s.shard.Stream = stream
		}
		for _, parent := range parents {
			s.shard.Parents = append(s.shard.Parents, tree[parent].shard.ID)
		}
		for i := range s.items {
			if filtered && rng.IntN(8) == 0 {
				s.items[i].filter = dropped + filter(rng.IntN(2))
			}
		}
		tree = append(tree, s)
	}
	return tree
}

// from returns the index of the first item behind a position.
func (s *source) from(at runnel.Position) int {
	for i := range s.items {
		if at.Less(s.items[i].record.Position) {
			return i
		}
	}
	return len(s.items)
}

// batch returns the records of items [lo, hi) that a consumer's filter lets through.
func (s *source) batch(rng *rand.Rand, lo, hi int) []runnel.Record {
	var records []runnel.Record
	for _, item := range s.items[lo:hi] {
		if item.filter == delivered || item.filter == doubtful && rng.IntN(2) == 0 {
			records = append(records, item.record)
		}
	}
	return records
}
