package reshard

import (
	"errors"
	"fmt"
	"time"

	"github.com/runnel-stream/runnel/keyspace/plan"
)

// The limits of one shard for each second (AWS, "Quotas and limits").
const (
	ShardBytes   = 1 << 20 // of data and partition keys
	ShardRecords = 1000
)

// Policy holds the thresholds at which an Autoscaler splits and merges. A load is a fraction of
// one shard's limit, of bytes or of records, whichever fraction is larger; 1 is the full limit.
// Fields that are zero have their defaults. MergeUnder <= Target <= SplitAbove must hold: a load
// that stays between MergeUnder and SplitAbove changes nothing.
type Policy struct {
	// SplitAbove is the load above which a shard is split. In (0, 1]. Default 0.8.
	SplitAbove float64
	// Target is the highest load that a piece of a split should have. Default 0.7.
	Target float64
	// MergeUnder is the load up to which neighbours are merged. It applies to the sum of their
	// peak loads. Default 0.35. Below 0 nothing is merged.
	MergeUnder float64

	// SplitWindows and SplitOf are the condition for a split: a shard has to be above SplitAbove
	// in SplitWindows of the last SplitOf windows, and in the newest one. Defaults 2 of 3.
	SplitWindows, SplitOf int
	// MergeWindows is the number of windows in a row that neighbours have to stay under
	// MergeUnder. Default 10.
	MergeWindows int
	// SplitCooldown is the time without splits after any change of the shards, also a change by
	// something else. Default 0: a split needs SplitWindows new windows anyway.
	SplitCooldown time.Duration
	// MergeCooldown is the time without merges after such a change. Default 10 minutes; below 0
	// is 0.
	MergeCooldown time.Duration

	// MinShards and MaxShards limit the number of open shards. With fewer than MinShards, shards
	// are split at any load. No split goes beyond MaxShards. Defaults 1 and 100, at most 10,000.
	// If more than MaxShards are open already, they are merged only as their load allows.
	MinShards, MaxShards int
	// MaxSteps is the highest number of splits or merges in one decision. One step takes some
	// 30 s on AWS. Default 16.
	MaxSteps int

	// ShardBytes and ShardRecords are the limits of one shard for each second. Defaults: those
	// of AWS, 1 MiB and 1,000 records.
	ShardBytes, ShardRecords float64
}

// withDefaults returns the policy with its zero fields set to their defaults.
func (p Policy) withDefaults() Policy {
	set(&p.SplitAbove, 0.8)
	set(&p.Target, 0.7)
	set(&p.MergeUnder, 0.35)
	set(&p.SplitWindows, 2)
	set(&p.SplitOf, max(3, p.SplitWindows))
	set(&p.MergeWindows, 10)
	set(&p.MergeCooldown, 10*time.Minute)
	set(&p.MinShards, 1)
	set(&p.MaxShards, max(100, p.MinShards))
	set(&p.MaxSteps, 16)
	set(&p.ShardBytes, ShardBytes)
	set(&p.ShardRecords, ShardRecords)
	return p
}

func set[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Validate reports every fault of the policy.
func (p Policy) Validate() error {
	p = p.withDefaults()
	var faults []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			faults = append(faults, fmt.Errorf("reshard: "+format, args...))
		}
	}
	check(p.SplitAbove > 0 && p.SplitAbove <= 1,
		"SplitAbove is %g: want a fraction of a shard's limit, above 0 and up to 1", p.SplitAbove)
	check(p.Target > 0 && p.Target <= p.SplitAbove,
		"Target is %g: want above 0 and up to SplitAbove, which is %g", p.Target, p.SplitAbove)
	check(p.MergeUnder <= p.Target,
		"MergeUnder is %g: want up to Target, which is %g", p.MergeUnder, p.Target)
	check(p.SplitWindows >= 1 && p.SplitWindows <= p.SplitOf && p.SplitOf <= maxWindows,
		"SplitWindows is %d of SplitOf %d: want 1 up to SplitOf, and that up to %d",
		p.SplitWindows, p.SplitOf, maxWindows)
	check(p.MergeWindows >= 1 && p.MergeWindows <= maxWindows,
		"MergeWindows is %d: want 1 to %d", p.MergeWindows, maxWindows)
	check(p.SplitCooldown >= 0, "SplitCooldown is %s: want 0 or more", p.SplitCooldown)
	check(p.MinShards >= 1 && p.MinShards <= p.MaxShards,
		"MinShards is %d: want 1 up to MaxShards, which is %d", p.MinShards, p.MaxShards)
	check(p.MaxShards <= plan.MaxShards,
		"MaxShards is %d: want up to %d", p.MaxShards, plan.MaxShards)
	check(p.MaxSteps >= 1, "MaxSteps is %d: want 1 or more", p.MaxSteps)
	check(p.ShardBytes > 0, "ShardBytes is %g: want above 0", p.ShardBytes)
	check(p.ShardRecords > 0, "ShardRecords is %g: want above 0", p.ShardRecords)
	return errors.Join(faults...)
}

// maxWindows is the highest number of windows in memory. Each takes two numbers for each shard.
const maxWindows = 1000
