package reshard_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/runnel-stream/runnel/keyspace"
	"github.com/runnel-stream/runnel/keyspace/load"
	"github.com/runnel-stream/runnel/keyspace/plan"
	"github.com/runnel-stream/runnel/reshard"
	"github.com/runnel-stream/runnel/runneltest"
)

// soak multiplies the size of the random suite: RUNNEL_SOAK, 1 if it is not set.
func soak() int {
	if n, err := strconv.Atoi(os.Getenv("RUNNEL_SOAK")); err == nil && n > 0 {
		return n
	}
	return 1
}

// randomPlan draws a plan for the stream as it is.
func randomPlan(t *testing.T, rng *rand.Rand, open []keyspace.Range) plan.Plan {
	t.Helper()
	if rng.IntN(3) == 0 {
		p, err := plan.Uniform(open, 1+rng.IntN(6), rng.IntN(2)*10)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	histogram := load.NewHistogram(64)
	for range 40 {
		histogram.Add(keyspace.Key{Hi: rng.Uint64(), Lo: rng.Uint64()}, rng.Uint64N(20))
	}
	target := 40 + rng.Uint64N(200)
	p, err := plan.ForLoad(open, histogram.Points(),
		plan.Goal{Target: target, MergeUnder: rng.Uint64N(target)})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Plans drawn from a seed are applied under faults and interruptions at any moment; each ends as
// predicted, and no step was taken twice.
func TestApplyRandom(t *testing.T) {
	seeds, steps, cuts, struck := 8*soak(), 0, 0, 0
	for seed := range seeds {
		faults := fmt.Sprintf("seed=%d SplitShard:lose-answer%%15,SplitShard:throttle%%15,"+
			"MergeShards:commit-late=400ms%%15,MergeShards:error-500%%15,ListShards:error-503%%10,"+
			"UpdateShardCount:lose-request%%20,DescribeStreamSummary:throttle%%10", seed)
		inBubble(t, 1+seed%3, faults, func(
			t *testing.T, server *runneltest.Server, client *kinesis.Client,
		) {
			rng := rand.New(rand.NewPCG(uint64(seed), 7))
			for range 3 {
				before, err := reshard.List(t.Context(), client, stream)
				if err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				planned := randomPlan(t, rng, reshard.OpenRanges(before))
				for range rng.IntN(4) {
					ctx, cancel := context.WithTimeoutCause(t.Context(),
						time.Duration(rng.Int64N(int64(2*time.Minute))), errCut)
					err := reshard.Apply(ctx, client, stream, planned, nil)
					cancel()
					if err != nil && !errors.Is(err, errCut) {
						t.Fatalf("seed %d: %v", seed, err)
					}
					if err != nil {
						cuts++
					}
				}
				if err := reshard.Apply(t.Context(), client, stream, planned, nil); err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				after, err := reshard.List(t.Context(), client, stream)
				if err == nil {
					err = planned.Reached(reshard.OpenRanges(after))
				}
				made := 0
				for _, step := range planned.Steps {
					made += len(step.To)
				}
				if got := len(after) - len(before); err != nil || made > 0 && got != made {
					t.Fatalf("seed %d: %d new shards, want %d: %v", seed, got, made, err)
				}
				steps += len(planned.Steps)
			}
			for _, n := range server.FaultCounts() {
				struck += n
			}
		})
	}
	t.Logf("soak: %d seeds, %d steps, %d interruptions, %d faults", seeds, steps, cuts, struck)
}
