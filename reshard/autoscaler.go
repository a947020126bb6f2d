package reshard

import (
	"fmt"
	"slices"
	"time"

	"github.com/runnel-stream/runnel/keyspace"
	"github.com/runnel-stream/runnel/keyspace/load"
	"github.com/runnel-stream/runnel/keyspace/plan"
)

// Autoscaler decides when the shards of one stream are split and merged, from a sequence of
// samples. It is pure: the time comes with the samples, and its decisions are data. The caller
// does not report whether it carried out a decision: the shards of the next sample show it.
//
// It splits fast and merges slowly. If a shard is above SplitAbove in enough windows, it is split
// into the smallest number of pieces at or below Target. A shard is not split if that does not
// help, because one key has nearly all of its load. Neighbours are merged if the sum of their
// peaks over MergeWindows windows is at or under MergeUnder. A decision splits or merges, never
// both. If the shards differ from those of the sample before, the earlier samples are dropped.
//
// It is not safe for concurrent use.
type Autoscaler struct {
	policy  Policy
	layout  []keyspace.Range // the open shards of the samples in past, in hash key order
	past    [][]part         // the loads of the layout's shards, window by window, the newest last
	changed time.Time        // start of the first window with a new layout; zero if none
}

// Action is the kind of a Decision.
type Action string

// The actions.
const (
	ActionHold  Action = "hold"
	ActionSplit Action = "split"
	ActionMerge Action = "merge"
)

// Decision is the result of one sample.
type Decision struct {
	Action Action // what to do: ActionHold, ActionSplit or ActionMerge
	// Plan begins with the sample's shards. For ActionHold it has no steps. The unit of its loads
	// is 10^-12 of one shard's limit.
	Plan plan.Plan
	// Reasons explain the decision, in sentences without a full stop. There is at least one.
	Reasons []string
	// Peak is the load of the most loaded shard of the window, refused attempts included. 1 is
	// the limit of one shard.
	Peak float64
}

// NewAutoscaler returns an Autoscaler without a history. It fails if the policy is invalid; the
// error has all that Policy.Validate found.
func NewAutoscaler(policy Policy) (*Autoscaler, error) {
	if err := policy.Validate(); err != nil {
		return nil, fmt.Errorf("autoscale: %w", err)
	}
	return &Autoscaler{policy: policy.withDefaults()}, nil
}

// Decide takes the next sample and returns the decision for it. It fails if the sample's open
// shards do not tile the key space or if its duration is not above 0; then the sample does not
// count.
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
		d.decision.Action = ActionHold
		d.decision.Plan, err = plan.WithBounds(a.layout, bounds(a.layout), points)
	}
	return d.decision, err
}

// deciding is the state of one call of Decide. Its shards are those of the layout, in its order.
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

// remember adds the sample to the history and drops the windows that are no longer needed.
func (d *deciding) remember() {
	a, layout, loads := d.Autoscaler, OpenRanges(d.sample.Shards), make([]part, len(d.shards))
	for i, shard := range d.shards {
		layout[i], loads[i] = shard.Range, shard.load
		d.decision.Peak = max(d.decision.Peak, shard.load.load())
	}
	if !slices.Equal(layout, a.layout) {
		if a.layout != nil {
			a.changed = d.sample.At.Add(-d.sample.Took)
			d.because("open shards: %d now, %d before; the history starts anew",
				len(layout), len(a.layout))
		}
		a.layout, a.past = layout, nil
	}
	a.past = append(a.past, loads)
	a.past = a.past[max(0, len(a.past)-max(a.policy.SplitOf, a.policy.MergeWindows)):]
}

// plan sets the decision and returns true, if the bounds need any step.
func (d *deciding) plan(action Action, bounds []keyspace.Key) bool {
	planned, err := plan.WithBounds(d.layout, bounds, d.points)
	if err != nil || len(planned.Steps) == 0 {
		return false
	}
	d.decision.Action, d.decision.Plan = action, planned
	return true
}

// cooling returns the remaining part of a cooldown after the last change of the shards.
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
	d.because("open shards: %d, the minimum is %d", len(d.layout), d.policy.MinShards)
	return d.plan(ActionSplit, bounds(pieces))
}

// bounds returns the starts of all ranges but the first.
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

// shardOf returns the index of the shard with the key. The shards must tile the key space, in
// order.
func shardOf(shards []measured, k keyspace.Key) int {
	at, _ := slices.BinarySearchFunc(shards, k, func(s measured, k keyspace.Key) int {
		return s.Range.End.Compare(k)
	})
	return at
}
