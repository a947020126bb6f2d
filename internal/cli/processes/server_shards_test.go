package processes_test

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/runnel-stream/runnel/keyspace"
)

// layout holds the answers about the shards of "events".
type layout struct {
	mu        sync.Mutex
	known     map[string]shardFacts
	resharded map[string]bool // shards that an acknowledged split or merge has closed
	reshards  int
}

// shardFacts are the constant properties of a shard, and the end, which an open one gets later.
type shardFacts struct {
	hashKeys         keyspace.Range
	parent, adjacent string
	start, end       string
}

func newLayout() *layout {
	return &layout{known: map[string]shardFacts{}, resharded: map[string]bool{}}
}

func factsOf(sh types.Shard) shardFacts {
	return shardFacts{
		hashKeys: rangeOf(sh),
		parent:   aws.ToString(sh.ParentShardId), adjacent: aws.ToString(sh.AdjacentParentShardId),
		start: *sh.SequenceNumberRange.StartingSequenceNumber,
		end:   aws.ToString(sh.SequenceNumberRange.EndingSequenceNumber),
	}
}

func rangeOf(sh types.Shard) keyspace.Range {
	start, _ := keyspace.Parse(*sh.HashKeyRange.StartingHashKey)
	end, _ := keyspace.Parse(*sh.HashKeyRange.EndingHashKey)
	return keyspace.Range{Start: start, End: end}
}

// maxOpen is up to how many open shards the resharder splits.
const maxOpen = 6

// resharder splits and merges shards of "events", one after the other with some time between.
func (r *serverRun) resharder() func() outcome {
	random := r.source("resharder")
	return func() outcome {
		r.pause(time.Duration(50+random.IntN(250)) * time.Millisecond)
		listed, o := r.listShards("events")
		if o != done {
			return o
		}
		open := slices.DeleteFunc(listed, func(sh types.Shard) bool {
			return sh.SequenceNumberRange.EndingSequenceNumber != nil
		})
		slices.SortFunc(open, func(a, b types.Shard) int {
			return rangeOf(a).Start.Compare(rangeOf(b).Start)
		})
		return r.reshard(random, open)
	}
}

// reshard splits or merges one of the open shards, which are in the order of their ranges. A
// call without an answer may still be under way: then the stream is in use, or the shard is closed.
func (r *serverRun) reshard(random *rand.Rand, open []types.Shard) outcome {
	codes := []string{"ResourceInUseException", "InvalidArgumentException"}
	i := random.IntN(len(open) - 1)
	parents := []string{*open[i].ShardId, *open[i+1].ShardId}
	o := refused
	if split := len(open) < maxOpen && random.IntN(2) == 0; split {
		parents = parents[:1]
		o = r.call("split", codes, func(ctx context.Context) error {
			_, err := r.kinesis.SplitShard(ctx, &kinesis.SplitShardInput{
				StreamName: aws.String("events"), ShardToSplit: open[i].ShardId,
				NewStartingHashKey: aws.String(rangeOf(open[i]).Middle().String()),
			})
			return err
		})
	} else if len(open) > 2 {
		o = r.call("merge", codes, func(ctx context.Context) error {
			_, err := r.kinesis.MergeShards(ctx, &kinesis.MergeShardsInput{
				StreamName: aws.String("events"), ShardToMerge: open[i].ShardId,
				AdjacentShardToMerge: open[i+1].ShardId,
			})
			return err
		})
	}
	if o == done {
		r.layout.mu.Lock()
		defer r.layout.mu.Unlock()
		r.layout.reshards++
		for _, id := range parents {
			r.layout.resharded[id] = true
		}
	}
	return o
}

// checkLayout compares the shards with those of earlier answers, and with one another. At the end
// every requested reshard is done.
func (r *serverRun) checkLayout(over bool) {
	l := r.layout
	l.mu.Lock()
	resharded := maps.Clone(l.resharded)
	l.mu.Unlock()
	listed, o := r.listShards("events")
	if o != done {
		r.t.Fatal("list the shards: no answer")
	}
	now := map[string]shardFacts{}
	var open []keyspace.Range
	for _, sh := range listed {
		facts := factsOf(sh)
		now[*sh.ShardId] = facts
		if facts.end == "" {
			open = append(open, facts.hashKeys)
		}
	}
	if err := keyspace.Tiles(open); err != nil {
		r.t.Errorf("the open shards do not tile: %v", err)
	}
	for id, was := range l.known {
		is := now[id]
		if was.end == "" {
			was.end = is.end
		}
		if is != was {
			r.t.Errorf("%s was %+v, is %+v", id, was, is)
		}
	}
	for id, facts := range now {
		for _, parent := range []string{facts.parent, facts.adjacent} {
			if parent != "" && (now[parent].end == "" || compare(facts.start, now[parent].end) <= 0) {
				r.t.Errorf("%s starts at %s, and its parent %s ends at %q", id, facts.start, parent,
					now[parent].end)
			}
		}
	}
	for id := range resharded {
		if over && now[id].end == "" {
			r.t.Errorf("the split or merge of %s was acknowledged, and it is open", id)
		}
	}
	l.known = now
}

func (l *layout) count(tally map[string]int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	tally["reshards"] += l.reshards
}
