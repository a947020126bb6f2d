package reshard

import (
	"fmt"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/keyspace"
	"github.com/runnel-stream/runnel/keyspace/load"
)

// Sample is one measurement of a stream, over one window of time.
type Sample struct {
	At   time.Time     // the window's end
	Took time.Duration // its length
	// Shards are the open shards in the window, in any order. Closed shards are ignored.
	Shards []runnel.Shard
	// Points are the load by hash key: Weight is bytes, Also thousandths of Kinesis records.
	Points []load.Point
	// Hot are the heaviest partition keys, for the texts of reasons. It may be empty. The weights
	// have no unit.
	Hot []load.HeavyName
	// Throttled are the producers' counts for the window; the zero value if there are none.
	Throttled Throttled
}

// Throttled holds the producers' counts for a window. The unit is one attempt to put a record.
// A refused attempt never appears in the stream, so only producers can count it.
type Throttled struct {
	Stored  uint64 // 0 if unknown: then the observed records count instead
	Refused uint64 // for being over a shard's limit, over all shards
	// Shards splits Refused by shard, as far as the shard is known. It may be empty.
	Shards map[runnel.ShardID]uint64
}

// part is a load in bytes and in records, each as a fraction of one shard's limit.
type part struct{ bytes, records float64 }

// load returns the larger of the two fractions.
func (p part) load() float64 { return max(p.bytes, p.records) }

func (p part) plus(other part) part {
	return part{p.bytes + other.bytes, p.records + other.records}
}

func (p part) times(factor float64) part { return part{p.bytes * factor, p.records * factor} }

// point returns the part as a load.Point at a hash key.
func (p part) point(at keyspace.Key) load.Point {
	return load.Point{At: at, Weight: weigh(p.bytes), Also: weigh(p.records)}
}

// full is the weight of one shard's limit. It is large enough to represent one record an hour.
const full = 1e12

// weigh converts a fraction of a shard's limit to a weight.
func weigh(part float64) uint64 { return uint64(min(part, 1e6) * full) }

// measured is an open shard's load in a window.
type measured struct {
	runnel.Shard
	seen    part    // the load that the shard stored
	load    part    // the load that was offered, refused attempts included as far as known
	refused float64 // attempts
}

// measure returns the loads of a sample's open shards, in hash key order, and the sample's
// points. The weights of these points are fractions of a shard's limit, in units of 1/full.
func (p Policy) measure(s Sample) ([]measured, []load.Point, error) {
	if s.Took <= 0 {
		return nil, nil, fmt.Errorf("a sample of %s: want more than 0", s.Took)
	}
	var shards []measured
	for _, shard := range s.Shards {
		if shard.Open() {
			shards = append(shards, measured{Shard: shard})
		}
	}
	if err := keyspace.Tiles(OpenRanges(s.Shards)); err != nil {
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

// leastRefused is a fraction of all attempts. A smaller fraction of refusals comes from bursts of
// less than a second, which producers absorb by retrying, so these refusals are ignored.
const leastRefused = 0.001

// mostTargets limits the estimated load of a throttled shard, in multiples of Target. It makes a
// split yield two shards and seldom three. Without a limit the estimate would be too high:
// producers retry refused attempts, so these count several times, and the backlog is temporary.
// If two shards are too few, the next windows show it.
const mostTargets = 1.8

// throttle sets the shards' loads from the observed load and the refused attempts. It returns the
// factor by which each load was raised. A throttled shard is at its limit at least, and the
// refused attempts are missing from its observed load:
//
//	full = max(seen, 1)
//	load = max(full, min(full * (stored + refused) / stored, mostTargets * Target))
//
// If a shard with little load refuses records, the reason is a burst or not the shard's limit.
// Its load stays as observed: a split would not help for long, since the pieces would be merged
// again.
//
// Refusals without a known shard are shared among the shards above SplitAbove, in proportion to
// their load. If no shard is above SplitAbove, they all count for the most loaded shard.
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

// littleLoad returns the load up to which a throttled shard is not considered to be at its limit.
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
