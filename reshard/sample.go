package reshard

import (
	"fmt"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/keyspace"
	"github.com/runnel-stream/runnel/keyspace/load"
)

// Sample is what was seen of a stream in one window of time.
type Sample struct {
	At   time.Time     // the window's end
	Took time.Duration // its length
	// Shards are the open shards in the window, in any order; closed ones are not looked at.
	Shards []Shard
	// Points are where the load fell: Weight is bytes, Also thousandths of Kinesis records.
	Points []load.Point
	// Hot are the heaviest partition keys, which reasons name; there may be none. Their weights
	// have no unit.
	Hot []load.HeavyName
	// Throttled is what producers say of the window; the zero value if nobody does.
	Throttled Throttled
}

// Throttled is how producers fared in a window, in attempts to put a record: what got in is
// seen in the stream, what was refused is not.
type Throttled struct {
	Stored  uint64 // 0 where nobody knows: then the records that were seen count
	Refused uint64 // for being over a shard's limit, of all shards
	// Shards is what of Refused is known to be of which shard; there may be nothing.
	Shards map[runnel.ShardID]uint64
}

// part is bytes and records, each as a part of what a shard takes of it.
type part struct{ bytes, records float64 }

// load is the larger part.
func (p part) load() float64 { return max(p.bytes, p.records) }

func (p part) plus(other part) part {
	return part{p.bytes + other.bytes, p.records + other.records}
}

func (p part) times(factor float64) part { return part{p.bytes * factor, p.records * factor} }

// point is the part as a point's weights.
func (p part) point(at keyspace.Key) load.Point {
	return load.Point{At: at, Weight: weigh(p.bytes), Also: weigh(p.records)}
}

// full is the weight of all that a shard takes: fine enough for a single record in an hour.
const full = 1e12

// weigh returns a part as a weight.
func weigh(part float64) uint64 { return uint64(min(part, 1e6) * full) }

// measured is an open shard's load in a window.
type measured struct {
	Shard
	seen    part    // what got in
	load    part    // what wanted in, as far as it is known
	refused float64 // attempts
}

// measure returns the loads of a sample's open shards, by hash key, and its points, which are
// thereby parts of what a shard takes, in the weight of full.
func (p Policy) measure(s Sample) ([]measured, []load.Point, error) {
	if s.Took <= 0 {
		return nil, nil, fmt.Errorf("a sample of %s: want more than 0", s.Took)
	}
	var shards []measured
	for _, shard := range s.Shards {
		if shard.Open {
			shards = append(shards, measured{Shard: shard})
		}
	}
	if err := keyspace.Tiles(Open(s.Shards)); err != nil {
		return nil, nil, fmt.Errorf("a sample's open shards: %w", err)
	}
	sortShards(shards)
	seconds := s.Took.Seconds()
	points := make([]load.Point, 0, len(s.Points))
	owner := make([]int, 0, len(s.Points))
	for _, point := range s.Points {
		in := part{
			bytes:   float64(point.Weight) / seconds / p.ShardBytes,
			records: float64(point.Also) / 1000 / seconds / p.ShardRecords,
		}
		at := shardOf(shards, point.At)
		shards[at].seen = shards[at].seen.plus(in)
		owner = append(owner, at)
		points = append(points, in.point(point.At))
	}
	growth := p.throttle(shards, s.Throttled, seconds)
	for i, point := range points {
		factor := growth[owner[i]]
		points[i].Weight = uint64(float64(point.Weight) * factor)
		points[i].Also = uint64(float64(point.Also) * factor)
	}
	return shards, points, nil
}

// leastRefused is below which part of all attempts refusals are bursts of less than a second,
// which producers sit out.
const leastRefused = 0.001

// mostTargets is for how many shards at Target a throttled one counts at most, so that it becomes
// two and seldom three: attempts that were refused are made again and count again, and what has
// piled up meanwhile wants in for a while alone. Where two are too few, the next windows tell.
const mostTargets = 1.8

// throttle sets the loads of the shards from what was seen of them and what was refused, and
// returns by what factor each was raised. A throttled shard is at its limit at least, and of what
// wanted in the part that was refused was not seen:
//
//	full = max(seen, 1)
//	load = max(full, min(full * (stored + refused) / stored, mostTargets * Target))
//
// A shard with little load is refused records for its bursts, or for what is not its limit. A
// split would not help for long: its pieces would be merged again, so it is as it was seen.
//
// What is known of the whole stream alone is counted for the shards above SplitAbove, by their
// load, or for the most loaded one if none is.
func (p Policy) throttle(shards []measured, t Throttled, seconds float64) []float64 {
	refused := refusedOf(shards, t, p.SplitAbove)
	total := 0.0
	for _, shard := range shards {
		total += shard.seen.records
	}
	growth := make([]float64, len(shards))
	for i := range shards {
		shard := &shards[i]
		shard.load, growth[i] = shard.seen, 1
		stored := shard.seen.records * p.ShardRecords * seconds
		if t.Stored > 0 && total > 0 {
			stored = float64(t.Stored) * shard.seen.records / total
		}
		if refused[i] == 0 || refused[i] < leastRefused*(stored+refused[i]) {
			continue
		}
		shard.refused = refused[i]
		if shard.seen.load() <= p.littleLoad() {
			continue
		}
		full := max(shard.seen.load(), 1)
		wanted := full * (stored + refused[i]) / max(1, stored)
		growth[i] = max(full, min(wanted, mostTargets*p.Target)) / shard.seen.load()
		shard.load = shard.seen.times(growth[i])
	}
	return growth
}

// littleLoad is up to which load a throttled shard is not taken for one at its limit.
func (p Policy) littleLoad() float64 { return max(p.MergeUnder, p.Target/2) }

// refusedOf returns how many attempts were refused by each shard.
func refusedOf(shards []measured, t Throttled, above float64) []float64 {
	refused := make([]float64, len(shards))
	rest := float64(t.Refused)
	for i, shard := range shards {
		refused[i] = float64(t.Shards[shard.ID])
		rest -= refused[i]
	}
	fullest, hot := 0, 0.0
	for i, shard := range shards {
		if load := shard.seen.load(); load > above {
			hot += load
		}
		if shard.seen.load() > shards[fullest].seen.load() {
			fullest = i
		}
	}
	for i, shard := range shards {
		switch load := shard.seen.load(); {
		case rest <= 0:
		case hot == 0 && i == fullest:
			refused[i] += rest
		case load > above:
			refused[i] += rest * load / hot
		}
	}
	return refused
}
