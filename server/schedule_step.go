package server

import (
	"math/rand/v2"

	"github.com/runnel-stream/runnel/internal/fault"
	"github.com/runnel-stream/runnel/keyspace"
)

// openShard is an open shard.
type openShard struct {
	id    string
	owned keyspace.Range
}

// step is one split or merge, as its API request; the zero value is nothing.
type step struct {
	operation string
	request   map[string]any // without the stream
}

const (
	// maxScheduled bounds the open shards of a stream that is resharded on a schedule. It is the
	// most that any stream can have (AWS, "UpdateShardCount").
	maxScheduled = 10_000
	// minSplit is the narrowest range to split, in keys: a quarter of it is still more than
	// SplitShard's minimum distance from the ends.
	minSplit = 4096
)

// stepOf returns the change that a turn makes to the open shards, which are in the order of their
// ranges. It depends on nothing else.
func stepOf(turn fault.Turn, open []openShard) step {
	rng := rand.New(rand.NewPCG(turn.Draw, turn.Number))
	split := rng.IntN(2) == 0
	at := rng.IntN(1 << 30)
	part := 64 + rng.IntN(128) // of 256: between a quarter and three quarters of the range
	switch n := len(open); {
	case n == 0:
		return step{}
	case n == 1, split && n < min(turn.Most, maxScheduled):
		return splitStep(open, at, part)
	default:
		at %= n - 1
		return step{"MergeShards", map[string]any{
			"ShardToMerge": open[at].id, "AdjacentShardToMerge": open[at+1].id,
		}}
	}
}

// splitStep splits the first wide enough shard from the atth on. There always is one, since the
// shards share the key space.
func splitStep(open []openShard, at, part int) step {
	for i := range open {
		sh := open[(at+i)%len(open)]
		width := sh.owned.End.Sub(sh.owned.Start)
		if width.Hi == 0 && width.Lo < minSplit {
			continue
		}
		start := sh.owned.Start
		for bit := 128; bit > 0; bit /= 2 {
			width = width.Half()
			if part&bit != 0 {
				start = start.Add(width)
			}
		}
		return step{"SplitShard", map[string]any{
			"ShardToSplit": sh.id, "NewStartingHashKey": start.String(),
		}}
	}
	return step{}
}
