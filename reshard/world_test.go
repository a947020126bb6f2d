package reshard_test

import (
	"fmt"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/keyspace"
	"github.com/runnel-stream/runnel/keyspace/load"
	"github.com/runnel-stream/runnel/keyspace/plan"
	"github.com/runnel-stream/runnel/reshard"
)

// world is a stream on paper: shards, a clock, and a load that is looked at in windows.
type world struct {
	shards []runnel.Shard // the open ones, by hash key
	next   int            // number of the next shard
	now    time.Time
	feed   feed
}

// feed selects the shards' limits and the refused attempts in a sample. Without limits nothing is
// refused. With AWS's limits the sample has no refused attempts, their sum, or those of each shard.
type feed int

const (
	unlimited feed = iota
	noCounts
	inAll
	byShard
)

const (
	windowTime = 30 * time.Second
	roundTime  = time.Minute
)

func newWorld(layout []keyspace.Range) *world {
	w := &world{now: time.Date(2026, 1, 31, 8, 0, 0, 0, time.UTC)}
	for _, r := range layout {
		w.open(r)
	}
	return w
}

func (w *world) open(r keyspace.Range) {
	w.shards = append(w.shards, runnel.Shard{
		ID: runnel.ShardID(fmt.Sprintf("shardId-%012d", w.next)), Range: r,
	})
	w.next++
}

// apply takes the steps of a plan.
func (w *world) apply(t rapid.TB, planned plan.Plan) {
	t.Helper()
	if err := planned.Validate(); err != nil {
		t.Fatal(err)
	}
	for _, step := range planned.Steps {
		before := len(w.shards)
		w.shards = slices.DeleteFunc(w.shards, func(s runnel.Shard) bool {
			return slices.Contains(step.From, s.Range)
		})
		if len(w.shards) != before-len(step.From) {
			t.Fatalf("%s: its shards are not open", step)
		}
		for _, r := range step.To {
			w.open(r)
		}
	}
	if err := planned.Reached(reshard.OpenRanges(w.shards)); err != nil {
		t.Fatal(err)
	}
}

// share is the points that fall on a shard, a second, and what part of AWS's limits that is.
func share(s runnel.Shard, loads []load.Point) (points []load.Point, part float64) {
	var bytes, records float64
	for _, p := range loads {
		if s.Range.Contains(p.At) {
			points = append(points, p)
			bytes += float64(p.Weight)
			records += float64(p.Also) / 1000
		}
	}
	return points, max(bytes/reshard.ShardBytes, records/reshard.ShardRecords)
}

// look is a round: the sample of a window of that load, points a second.
func (w *world) look(loads []load.Point) reshard.Sample {
	w.now = w.now.Add(roundTime)
	s := reshard.Sample{At: w.now, Took: windowTime, Shards: w.shards}
	seconds := windowTime.Seconds()
	for _, shard := range w.shards {
		points, part := share(shard, loads)
		in := 1.0
		if w.feed != unlimited && part > 1 {
			in = 1 / part
		}
		var wanted, stored float64
		for _, p := range points {
			wanted += float64(p.Also) / 1000 * seconds
			stored += float64(p.Also) / 1000 * seconds * in
			s.Points = append(s.Points, load.Point{
				At: p.At, Weight: uint64(float64(p.Weight) * seconds * in),
				Also: uint64(float64(p.Also) * seconds * in),
			})
		}
		if refused := uint64(wanted - stored); refused > 0 && w.feed >= inAll {
			s.Throttled.Refused += refused
			if w.feed == byShard {
				if s.Throttled.Shards == nil {
					s.Throttled.Shards = map[runnel.ShardID]uint64{}
				}
				s.Throttled.Shards[shard.ID] = refused
			}
		}
		s.Throttled.Stored += uint64(stored)
	}
	if w.feed < inAll {
		s.Throttled = reshard.Throttled{}
	}
	return s
}

// round looks, decides, and applies.
func (w *world) round(
	t rapid.TB, a *reshard.Autoscaler, loads []load.Point,
) reshard.Decision {
	t.Helper()
	d, err := a.Decide(w.look(loads))
	if err != nil {
		t.Fatal(err)
	}
	w.apply(t, d.Plan)
	return d
}

// even is a load of so much of a shard's bytes and records, spread over n keys of a range.
func even(r keyspace.Range, n int, bytes, records float64) []load.Point {
	var points []load.Point
	for i := range n {
		points = append(points, load.Point{
			At:     r.Spread(keyspace.Uniform(n)[i].Start),
			Weight: uint64(bytes * reshard.ShardBytes / float64(n)),
			Also:   uint64(1000 * records * reshard.ShardRecords / float64(n)),
		})
	}
	return points
}
