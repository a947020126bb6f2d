package reshard

import (
	"slices"

	"github.com/runnel-stream/runnel/keyspace"
)

// merge merges neighbours if the sum of their peaks is at or under MergeUnder, from the lowest
// hash key on, as far as MinShards and MaxSteps allow. If it has to wait, the reasons explain it.
func (d *deciding) merge() bool {
	peaks := d.peaks()
	room := min(len(peaks)-d.policy.MinShards, d.policy.MaxSteps, len(peaks)/2)
	kept := d.apart(peaks, room)
	if merges := len(peaks) - 1 - len(kept); merges > 0 {
		return d.mergeTo(peaks, kept)
	}
	d.sayRest(peaks)
	return false
}

// mergeTo plans the merges that leave only these bounds, if there are enough windows and no
// cooldown.
func (d *deciding) mergeTo(peaks []part, kept []keyspace.Key) bool {
	from := 0
	for to := 1; to <= len(peaks); to++ {
		if to < len(peaks) && !slices.Contains(kept, d.layout[to].Start) {
			continue
		}
		if to-from > 1 {
			d.because("%s together peak at %s (merges up to %s), for %d of %s",
				d.names(from, to), percent(sum(peaks[from:to]).load()),
				percent(d.policy.MergeUnder), min(len(d.past), d.policy.MergeWindows),
				windowCount(d.policy.MergeWindows))
		}
		from = to
	}
	if len(d.past) < d.policy.MergeWindows {
		return false
	}
	if wait := d.cooling(d.policy.MergeCooldown); wait > 0 {
		d.because("cooling down after a change of the shards: no merge for another %s", short(wait))
		return false
	}
	return d.plan(ActionMerge, kept)
}

// peaks returns the highest bytes and the highest records of each shard over the last
// MergeWindows windows. The two may come from different windows.
func (d *deciding) peaks() []part {
	peaks := make([]part, len(d.shards))
	for _, loads := range d.past[max(0, len(d.past)-d.policy.MergeWindows):] {
		for i, load := range loads {
			peaks[i].bytes = max(peaks[i].bytes, load.bytes)
			peaks[i].records = max(peaks[i].records, load.records)
		}
	}
	return peaks
}

// apart returns the bounds that stay after up to room merges of neighbours.
func (d *deciding) apart(peaks []part, room int) []keyspace.Key {
	var kept []keyspace.Key
	sum := peaks[0]
	for i, peak := range peaks[1:] {
		joined := sum.plus(peak)
		if joined.load() <= d.policy.MergeUnder && room > 0 {
			sum, room = joined, room-1
			continue
		}
		kept = append(kept, d.layout[i+1].Start)
		sum = peak
	}
	return kept
}

// sayRest adds the reason why there is nothing to do, unless there is a reason already.
func (d *deciding) sayRest(peaks []part) {
	if len(d.decision.Reasons) > 0 {
		return
	}
	fullest := slices.MaxFunc(d.shards, byLoad)
	switch {
	case sum(peaks) == part{}:
		d.because("the stream had no record")
	case len(peaks) == d.policy.MinShards:
		d.because("%s (splits above %s); already at the minimum of %s",
			d.describe(fullest), percent(d.policy.SplitAbove), shardCount(d.policy.MinShards))
	default:
		d.because("%s (splits above %s); the peaks of all neighbours add up to more than %s",
			d.describe(fullest), percent(d.policy.SplitAbove), percent(d.policy.MergeUnder))
	}
}

func sum(parts []part) part {
	var all part
	for _, p := range parts {
		all = all.plus(p)
	}
	return all
}
