package reshard

import (
	"fmt"
	"slices"

	"github.com/runnel-stream/runnel/keyspace"
	"github.com/runnel-stream/runnel/keyspace/load"
	"github.com/runnel-stream/runnel/keyspace/plan"
)

// mostLeft is a fraction of a shard's load. If the most loaded piece of a split stays above the
// target, the split helps only if that piece has at most this fraction.
const mostLeft = 0.9

// split splits the shards above SplitAbove. It returns true if no merge may follow: there is
// something to split now, or there may be soon, and a merge would delay that.
func (d *deciding) split() bool {
	d.sayBursts()
	hot, waiting := d.hot()
	if len(hot) == 0 {
		return waiting
	}
	if wait := d.cooling(d.policy.SplitCooldown); wait > 0 {
		d.because("cooling down after a change of the shards: no split for another %s", short(wait))
		return true
	}
	hot = d.helped(hot)
	cuts := d.cuts(hot, weigh(d.policy.Target))
	room := min(d.policy.MaxShards-len(d.layout), d.policy.MaxSteps)
	switch {
	case len(cuts) == 0:
		return waiting
	case room <= 0:
		d.because("open shards: %d, the maximum is %d: no split",
			len(d.layout), d.policy.MaxShards)
		return false
	case len(cuts) > room:
		d.because("that needs %s: the maximum is %d shards, and %d splits at a time",
			count(float64(len(cuts)), "more shard"), d.policy.MaxShards, d.policy.MaxSteps)
		cuts = d.fewerCuts(hot, room)
	}
	if !d.plan(ActionSplit, append(cuts, bounds(d.layout)...)) {
		return false
	}
	for _, i := range hot[:min(mostNamed, len(hot))] {
		if pieces := d.pieces(d.decision.Plan, i); len(pieces) > 1 {
			d.because("%s becomes %d shards of at most %s each", d.shards[i].ID, len(pieces),
				percent(peak(pieces)/full))
		}
	}
	return true
}

// mostNamed is the highest number of shards with a reason of their own.
const mostNamed = 8

// hot returns the shards to split, the most loaded first. For each shard above SplitAbove in this
// window it adds a reason with the number of windows. waiting is true if some of these shards are
// above SplitAbove, but not yet in enough windows.
func (d *deciding) hot() (hot []int, waiting bool) {
	var above []int
	for i, shard := range d.shards {
		if shard.load.load() > d.policy.SplitAbove {
			above = append(above, i)
		}
	}
	slices.SortStableFunc(above, func(a, b int) int {
		return byLoad(d.shards[b], d.shards[a])
	})
	for n, i := range above {
		windows := d.windowsAbove(i)
		if n < mostNamed {
			d.because("%s; above %s%s", d.describe(d.shards[i]),
				percent(d.policy.SplitAbove), d.hotWindows(windows))
		}
		if windows < d.policy.SplitWindows {
			waiting = true
		} else {
			hot = append(hot, i)
		}
	}
	if more := len(above) - mostNamed; more > 0 {
		d.because("%s more above %s", shardCount(more), percent(d.policy.SplitAbove))
	}
	return hot, waiting
}

// hotWindows describes the number of windows with a hot shard. It returns "" if SplitOf is 1.
func (d *deciding) hotWindows(above int) string {
	if d.policy.SplitOf == 1 {
		return ""
	}
	return fmt.Sprintf(" in %d of the last %d windows (splits at %d)", above, d.policy.SplitOf,
		d.policy.SplitWindows)
}

// windowsAbove returns the number of windows, of the last SplitOf, with a shard above SplitAbove.
func (d *deciding) windowsAbove(shard int) int {
	windows := 0
	for _, loads := range d.past[max(0, len(d.past)-d.policy.SplitOf):] {
		if loads[shard].load() > d.policy.SplitAbove {
			windows++
		}
	}
	return windows
}

// sayBursts adds a reason for each shard that refused records at little load: they do not count.
func (d *deciding) sayBursts() {
	named := 0
	for _, shard := range d.shards {
		if shard.refused > 0 && shard.load == shard.seen && named < mostNamed {
			named++
			d.because("%s: its load does not explain the refusals (bursts, or another limit), "+
				"and a split would not help", d.describe(shard))
		}
	}
}

// helped returns the shards that a split helps. For each other shard it adds a reason.
func (d *deciding) helped(hot []int) []int {
	whole, named := d.planSplit(hot, weigh(d.policy.Target)), 0
	return slices.DeleteFunc(slices.Clone(hot), func(i int) bool {
		load := d.shards[i].load.load() * full
		if most := peak(d.pieces(whole, i)); most <= max(mostLeft*load, d.policy.Target*full) {
			return false
		}
		if named++; named > mostNamed {
			return true
		}
		key, weight := d.heaviest(i)
		d.because("%s of %s is of one partition key%s: only more partition keys help, no split",
			percent(weight/load), d.shards[i].ID, key)
		return true
	})
}

// planSplit returns a plan that splits only these shards, down to a target in units of 1/full.
func (d *deciding) planSplit(shards []int, target uint64) plan.Plan {
	split := make([]bool, len(d.shards))
	for _, i := range shards {
		split[i] = true
	}
	var points []load.Point
	for _, point := range d.points {
		if split[shardOf(d.shards, point.At)] {
			points = append(points, point)
		}
	}
	planned, err := plan.ForLoad(d.layout, points, plan.Goal{Target: max(1, target)})
	if err != nil {
		return plan.Plan{} // cannot happen: the layout tiles, and the target is above 0
	}
	return planned
}

// cuts returns the bounds that planSplit adds.
func (d *deciding) cuts(shards []int, target uint64) []keyspace.Key {
	var cuts []keyspace.Key
	for _, step := range d.planSplit(shards, target).Steps {
		cuts = append(cuts, step.Bound())
	}
	return cuts
}

// fewerCuts returns at most room bounds, and at least one if room is above 0. They are the cuts
// of the most loaded shards.
func (d *deciding) fewerCuts(shards []int, room int) []keyspace.Key {
	var cuts []keyspace.Key
	whole := d.planSplit(shards, weigh(d.policy.Target))
	for _, i := range shards {
		own := d.pieces(whole, i)[1:]
		if len(own) > room {
			own = d.fewPieces(i, room)[1:]
		}
		for _, piece := range own {
			cuts = append(cuts, piece.Range.Start)
		}
		if room -= len(own); room == 0 {
			break
		}
	}
	return cuts
}

// fewPieces cuts a shard at most cuts times and keeps the load of its most loaded piece low.
func (d *deciding) fewPieces(shard, cuts int) []plan.Shard {
	hot := []int{shard}
	// A target of low gives too many cuts; a target of high gives few enough, at first none.
	low, high := weigh(d.policy.Target), weigh(d.shards[shard].load.load())+1
	for high-low > full/1000 {
		middle := low + (high-low)/2
		if len(d.pieces(d.planSplit(hot, middle), shard))-1 > cuts {
			low = middle
		} else {
			high = middle
		}
	}
	return d.pieces(d.planSplit(hot, high), shard)
}

// pieces returns the pieces of a shard after a plan.
func (d *deciding) pieces(planned plan.Plan, shard int) []plan.Shard {
	var pieces []plan.Shard
	for _, piece := range planned.Final {
		if d.shards[shard].Range.Contains(piece.Range.Start) {
			pieces = append(pieces, piece)
		}
	}
	return pieces
}

func peak(pieces []plan.Shard) float64 {
	most := uint64(0)
	for _, piece := range pieces {
		most = max(most, piece.Load)
	}
	return float64(most)
}
