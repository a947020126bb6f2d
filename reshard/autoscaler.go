package reshard

import (
	"fmt"
	"slices"
	"time"

	"github.com/runnel-stream/runnel/keyspace"
	"github.com/runnel-stream/runnel/keyspace/load"
	"github.com/runnel-stream/runnel/keyspace/plan"
)

// Autoscaler decides when the shards of one stream are split and merged, from one sample after
// another. It is pure: time comes with the samples, and what it decides is data. It never needs
// to be told whether a decision was carried out, for the next sample's shards tell it.
//
// It splits fast and merges slowly. A shard that is above SplitAbove in enough windows is split
// into the fewest pieces that are at or below Target, as far as a split helps: not for the sake
// of one key that has nearly all of it. Neighbours are merged when their peaks of MergeWindows
// windows together are at or under MergeUnder. A decision splits or merges, never both. When the
// shards are others than in the sample before, what was seen is forgotten.
//
// It is not safe for concurrent use.
type Autoscaler struct {
	policy  Policy
	layout  []keyspace.Range // of the samples below, by hash key
	past    [][]part         // the loads of the layout's shards, window by window, the newest last
	changed time.Time        // when the layout was not the one before any more; zero if never
}

// Action is what is decided.
type Action string

// The actions.
const (
	Hold  Action = "hold"
	Split Action = "split"
	Merge Action = "merge"
)

// Decision is what an Autoscaler decides. It is data.
type Decision struct {
	Action Action
	// Plan is from the sample's shards on; without steps to Hold. Its loads are in 10^-12 of
	// what a shard takes.
	Plan plan.Plan
	// Reasons say why, in sentences without an end, at least one.
	Reasons []string
	// Peak is the load of the most loaded shard of the window, throttling counted; 1 is all
	// that a shard takes.
	Peak float64
}

// NewAutoscaler returns an Autoscaler without a past. It fails when the policy makes no sense,
// with everything that is wrong with it.
func NewAutoscaler(policy Policy) (*Autoscaler, error) {
	if err := policy.Validate(); err != nil {
		return nil, fmt.Errorf("autoscale: %w", err)
	}
	return &Autoscaler{policy: policy.withDefaults()}, nil
}

// Decide takes the next sample. It fails when the sample's open shards do not tile the key space
// or it took no time; then the sample is not counted.
func (a *Autoscaler) Decide(s Sample) (Decision, error) {
	shards, points, err := a.policy.measure(s)
	if err != nil {
		return Decision{}, fmt.Errorf("autoscale: %w", err)
	}
	d := &deciding{Autoscaler: a, sample: s, shards: shards, points: points}
	d.remember()
	for _, decide := range []func() bool{d.fill, d.split, d.merge} {
		if decide() {
			break
		}
	}
	if len(d.decision.Plan.Steps) == 0 {
		d.decision.Action = Hold
		d.decision.Plan, err = plan.WithBounds(a.layout, bounds(a.layout), points)
	}
	return d.decision, err
}

// deciding is one Decide. Its shards are those of the layout, in its order.
type deciding struct {
	*Autoscaler
	sample   Sample
	shards   []measured
	points   []load.Point
	decision Decision
}

// because adds a reason.
func (d *deciding) because(format string, args ...any) {
	d.decision.Reasons = append(d.decision.Reasons, fmt.Sprintf(format, args...))
}

// remember adds the sample to the past, and forgets what is no longer looked at.
func (d *deciding) remember() {
	a, layout, loads := d.Autoscaler, Open(d.sample.Shards), make([]part, len(d.shards))
	for i, shard := range d.shards {
		layout[i], loads[i] = shard.Range, shard.load
		d.decision.Peak = max(d.decision.Peak, shard.load.load())
	}
	if !slices.Equal(layout, a.layout) {
		if a.layout != nil {
			a.changed = d.sample.At.Add(-d.sample.Took)
			d.because("open shards: %d now, %d before; what was seen before counts no longer",
				len(layout), len(a.layout))
		}
		a.layout, a.past = layout, nil
	}
	a.past = append(a.past, loads)
	a.past = a.past[max(0, len(a.past)-max(a.policy.SplitOf, a.policy.MergeWindows)):]
}

// plan sets the decision, if there is anything to do.
func (d *deciding) plan(action Action, bounds []keyspace.Key) bool {
	planned, err := plan.WithBounds(d.layout, bounds, d.points)
	if err != nil || len(planned.Steps) == 0 {
		return false
	}
	d.decision.Action, d.decision.Plan = action, planned
	return true
}

// cooling returns how long nothing is done yet after a change.
func (d *deciding) cooling(cooldown time.Duration) time.Duration {
	if d.changed.IsZero() {
		return 0
	}
	return max(0, cooldown-d.sample.At.Sub(d.changed))
}

// fill splits the widest shards into halves while there are fewer than MinShards.
func (d *deciding) fill() bool {
	least := min(d.policy.MinShards, len(d.layout)+d.policy.MaxSteps)
	if len(d.layout) >= least {
		return false
	}
	pieces := slices.Clone(d.layout)
	for len(pieces) < least {
		widest := slices.MaxFunc(pieces, func(a, b keyspace.Range) int {
			return a.End.Sub(a.Start).Compare(b.End.Sub(b.Start))
		})
		at := slices.Index(pieces, widest)
		low, high := widest.SplitAt(widest.Middle())
		pieces = slices.Replace(pieces, at, at+1, low, high)
	}
	d.because("open shards: %d, and %d are wanted at least", len(d.layout), d.policy.MinShards)
	return d.plan(Split, bounds(pieces))
}

// bounds returns where all but the first range begin.
func bounds(ranges []keyspace.Range) []keyspace.Key {
	var bounds []keyspace.Key
	for _, r := range ranges[1:] {
		bounds = append(bounds, r.Start)
	}
	return bounds
}

func sortShards(shards []measured) {
	slices.SortFunc(shards, func(a, b measured) int { return a.Range.Start.Compare(b.Range.Start) })
}

// shardOf returns which of the shards, that tile the key space in order, has the key.
func shardOf(shards []measured, k keyspace.Key) int {
	at, _ := slices.BinarySearchFunc(shards, k, func(s measured, k keyspace.Key) int {
		return s.Range.End.Compare(k)
	})
	return at
}
