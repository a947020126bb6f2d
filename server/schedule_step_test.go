package server

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/runnel-stream/runnel/internal/fault"
	"github.com/runnel-stream/runnel/keyspace"
)

// take makes a step on open shards, as the API would, and fails if the API would refuse it.
func (s step) take(t *rapid.T, open []openShard, next *int) []openShard {
	at := func(member string) int {
		i := slices.IndexFunc(open, func(sh openShard) bool { return sh.id == s.request[member] })
		if i < 0 {
			t.Fatalf("%s of %v, which is not open", s.operation, s.request[member])
		}
		return i
	}
	opened := func(r keyspace.Range) openShard {
		*next++
		return openShard{fmt.Sprintf("shardId-%012d", *next), r}
	}
	switch s.operation {
	case "SplitShard":
		i := at("ShardToSplit")
		whole := open[i].owned
		key, err := keyspace.Parse(s.request["NewStartingHashKey"].(string))
		if err != nil || !whole.Start.Add(keyspace.Key{Lo: 1}).Less(key) || !key.Less(whole.End) {
			t.Fatalf("a split of %v at %v, %v", whole, key, err)
		}
		low, high := whole.SplitAt(key)
		return slices.Replace(slices.Clone(open), i, i+1, opened(low), opened(high))
	case "MergeShards":
		i, j := at("ShardToMerge"), at("AdjacentShardToMerge")
		if i == j || !open[i].owned.Adjacent(open[j].owned) {
			t.Fatalf("a merge of %v and %v", open[i].owned, open[j].owned)
		}
		joined := opened(open[i].owned.Join(open[j].owned))
		return slices.Replace(slices.Clone(open), min(i, j), max(i, j)+1, joined)
	default:
		t.Fatalf("a turn did %q", s.operation)
		return nil
	}
}

// TestStepsAreLegal: over random turns the API would accept every step, the open shards stay
// between one and Turn.Most, and a turn has only one outcome.
func TestStepsAreLegal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		next := 0
		var open []openShard
		for _, r := range keyspace.Uniform(rapid.IntRange(1, 20).Draw(t, "shards")) {
			next++
			open = append(open, openShard{fmt.Sprintf("shardId-%012d", next), r})
		}
		turn := fault.Turn{Most: max(2, 2*len(open))}
		splits, merges := 0, 0
		for range 200 {
			turn.Number++
			turn.Draw = rapid.Uint64().Draw(t, "draw")
			s := stepOf(turn, open)
			if again := stepOf(turn, open); !reflect.DeepEqual(s, again) {
				t.Fatalf("one turn did %v and %v", s, again)
			}
			if open = s.take(t, open, &next); len(open) < 1 || len(open) > turn.Most {
				t.Fatalf("%d open shards, want 1 to %d", len(open), turn.Most)
			}
			if s.operation == "SplitShard" {
				splits++
			} else {
				merges++
			}
		}
		if splits == 0 || merges == 0 {
			t.Fatalf("%d splits and %d merges", splits, merges)
		}
	})
}

// TestStepOfNarrowShards: a shard too narrow for SplitShard is not split.
func TestStepOfNarrowShards(t *testing.T) {
	narrow := keyspace.Range{Start: keyspace.Key{Lo: 7}, End: keyspace.Key{Lo: 7 + minSplit - 1}}
	wide := keyspace.Range{Start: keyspace.Key{Lo: 7 + minSplit}, End: keyspace.Max()}
	for draw := range uint64(200) {
		turn := fault.Turn{Draw: draw, Most: 4}
		s := stepOf(turn, []openShard{{"narrow", narrow}, {"wide", wide}})
		if s.operation == "SplitShard" && s.request["ShardToSplit"] != "wide" {
			t.Fatalf("draw %d splits %v", draw, s.request)
		}
		if s := stepOf(turn, []openShard{{"narrow", narrow}}); s.operation != "" {
			t.Fatalf("draw %d: %v", draw, s)
		}
	}
	if s := stepOf(fault.Turn{}, nil); s.operation != "" {
		t.Errorf("no shards: %v", s)
	}
}
