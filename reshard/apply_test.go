package reshard_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"iter"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"go.uber.org/goleak"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/follow"
	"github.com/runnel-stream/runnel/keyspace"
	"github.com/runnel-stream/runnel/keyspace/load"
	"github.com/runnel-stream/runnel/keyspace/plan"
	"github.com/runnel-stream/runnel/producer"
	"github.com/runnel-stream/runnel/reshard"
	"github.com/runnel-stream/runnel/runneltest"
)

const stream = "orders"

// TestMain multiplies the checks of rapid by RUNNEL_SOAK.
func TestMain(m *testing.M) {
	if err := flag.Set("rapid.checks", strconv.Itoa(rapidChecks*soak())); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

// inBubble runs a test on a server in memory, in virtual time.
func inBubble(
	t *testing.T, shards int, faults string,
	test func(t *testing.T, server *runneltest.Server, client *kinesis.Client),
) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server := runneltest.NewServer(t, runneltest.InMemory(),
			runneltest.WithStream(stream, shards), runneltest.WithFaults(faults),
			runneltest.WithStreamDelay(30*time.Second))
		// One call is one try: the retries are those of this package.
		test(t, server, kinesis.NewFromConfig(server.AWSConfig(), func(o *kinesis.Options) {
			o.Retryer = aws.NopRetryer{}
		}))
	})
}

// oddPlan splits and merges, from two equal shards.
func oddPlan(t *testing.T, target uint64) plan.Plan {
	t.Helper()
	var points []load.Point
	for i := range 40 {
		weight := uint64(1)
		if i < 8 {
			weight = 20
		}
		points = append(points, load.Point{At: keyspace.Key{Hi: uint64(i) << 58}, Weight: weight})
	}
	layout := []keyspace.Range{keyspace.Uniform(2)[0]}
	low, high := keyspace.Uniform(2)[1].SplitAt(keyspace.Key{Hi: 3 << 62})
	p, err := plan.ForLoad(append(layout, low, high), points,
		plan.Goal{Target: target, MergeUnder: target})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func layout(t *testing.T, client *kinesis.Client) []keyspace.Range {
	t.Helper()
	shards, err := reshard.List(t.Context(), client, stream)
	if err != nil {
		t.Fatal(err)
	}
	return reshard.OpenRanges(shards)
}

// begin makes the layout that oddPlan begins with.
func begin(t *testing.T, client *kinesis.Client, open []keyspace.Range) {
	t.Helper()
	p := plan.Plan{Open: keyspace.Uniform(2)}
	r := p.Open[1]
	low, high := r.SplitAt(open[2].Start)
	p.Steps = []plan.Step{{
		Kind: plan.StepSplit, From: []keyspace.Range{r}, To: []keyspace.Range{low, high},
	}}
	for _, r := range open {
		p.Final = append(p.Final, plan.Shard{Range: r})
	}
	if err := reshard.Apply(t.Context(), client, stream, p, nil); err != nil {
		t.Fatal(err)
	}
}

var errCut = errors.New("cut")

// cutting ends a context at one of the calls that change the stream, before it or after it.
type cutting struct {
	*kinesis.Client
	calls, at int
	after     bool
	cut       context.CancelCauseFunc
}

func (c *cutting) around(call func() error) error {
	c.calls++
	if c.calls == c.at && !c.after {
		c.cut(errCut)
		return errCut
	}
	err := call()
	if c.calls == c.at {
		c.cut(errCut)
		return errCut
	}
	return err
}

func (c *cutting) SplitShard(
	ctx context.Context, in *kinesis.SplitShardInput, o ...func(*kinesis.Options),
) (out *kinesis.SplitShardOutput, err error) {
	err = c.around(func() error { out, err = c.Client.SplitShard(ctx, in, o...); return err })
	return out, err
}

func (c *cutting) MergeShards(
	ctx context.Context, in *kinesis.MergeShardsInput, o ...func(*kinesis.Options),
) (out *kinesis.MergeShardsOutput, err error) {
	err = c.around(func() error { out, err = c.Client.MergeShards(ctx, in, o...); return err })
	return out, err
}

// A plan that was interrupted at any of its calls, made or not, is gone on with: every step is
// taken once, and the stream ends as predicted.
func TestApplyResumes(t *testing.T) {
	steps := len(oddPlan(t, 60).Steps)
	if steps < 4 {
		t.Fatalf("the plan has %d steps only", steps)
	}
	for at := 1; at <= steps; at++ {
		for _, after := range []bool{false, true} {
			inBubble(t, 2, "", func(t *testing.T, _ *runneltest.Server, client *kinesis.Client) {
				planned := oddPlan(t, 60)
				begin(t, client, planned.Open)
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				c := &cutting{Client: client, at: at, after: after, cut: cancel}
				if err := reshard.Apply(ctx, c, stream, planned, nil); !errors.Is(err, errCut) ||
					!strings.Contains(err.Error(), fmt.Sprintf("step %d of %d", at, steps)) {
					t.Fatalf("cut at %d: %v", at, err)
				}
				var states []string
				err := reshard.Apply(t.Context(), c, stream, planned,
					func(_ plan.Step, s reshard.StepState) { states = append(states, string(s)) })
				if err != nil {
					t.Fatalf("cut at %d, after the call is %v: %v", at, after, err)
				}
				done := at - 1
				if after {
					done++
				}
				want := strings.Repeat("found ", done) + strings.Repeat("begun done ", steps-done)
				if got := strings.Join(states, " ") + " "; got != want {
					t.Errorf("cut at %d: %s, want %s", at, got, want)
				}
				if err := planned.Reached(layout(t, client)); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// Throttles, outages and lost answers are retried. After a lost answer the step is not taken
// twice.
func TestApplyRetries(t *testing.T) {
	for _, faults := range []string{
		"SplitShard:throttle@2-5,MergeShards:error-500@1-3", "SplitShard:lose-answer@2,ListShards:error-503%30",
		"MergeShards:lose-answer@1,DescribeStreamSummary:throttle%40", "SplitShard:lose-request@2-3",
		"SplitShard:commit-late=300ms@2-3",
	} {
		inBubble(t, 2, faults, func(t *testing.T, server *runneltest.Server, client *kinesis.Client) {
			planned := oddPlan(t, 60)
			begin(t, client, planned.Open)
			if err := reshard.Apply(t.Context(), client, stream, planned, nil); err != nil {
				t.Errorf("%s: %v", faults, err)
			}
			if len(server.FaultCounts()) == 0 {
				t.Errorf("%s: no fault has struck", faults)
			}
			shards, err := reshard.List(t.Context(), client, stream)
			if want := 2 + 2; err == nil {
				for _, s := range planned.Steps {
					want += len(s.To)
				}
				if len(shards) != want || planned.Reached(reshard.OpenRanges(shards)) != nil {
					t.Errorf("%s: %d shards, want %d", faults, len(shards), want)
				}
			}
		})
	}
}

// An uninterrupted throttle ends after a while, with the step's name.
func TestApplyGivesUp(t *testing.T) {
	inBubble(t, 2, "SplitShard:throttle", func(t *testing.T, _ *runneltest.Server, client *kinesis.Client) {
		planned, err := plan.Uniform(keyspace.Uniform(2), 4, 0)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		err = reshard.Apply(t.Context(), client, stream, planned, nil)
		if err == nil || !strings.HasPrefix(err.Error(), "reshard stream orders: step 1 of 2, split [0, ") ||
			!strings.Contains(err.Error(), "LimitExceeded") {
			t.Errorf("got %v", err)
		}
		if took := time.Since(began); took < 10*time.Second || took > 3*time.Minute {
			t.Errorf("gave up after %s", took)
		}
	})
}

// UpdateShardCount in steps, gone on with in between.
func TestApplyScales(t *testing.T) {
	inBubble(t, 3, "UpdateShardCount:lose-answer@1", func(
		t *testing.T, _ *runneltest.Server, client *kinesis.Client,
	) {
		planned, err := plan.Uniform(layout(t, client), 24, 10)
		if err != nil || len(planned.Steps) != 3 {
			t.Fatalf("%v, %v", planned.Steps, err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		err = reshard.Apply(ctx, client, stream, planned, func(_ plan.Step, s reshard.StepState) {
			if s == reshard.StepDone {
				cancel(errCut)
			}
		})
		if open := layout(t, client); !errors.Is(err, errCut) || len(open) != 6 {
			t.Fatalf("%d shards, %v", len(open), err)
		}
		if err := reshard.Apply(t.Context(), client, stream, planned, nil); err != nil {
			t.Fatal(err)
		}
		if open := layout(t, client); len(open) != 24 || planned.Reached(open) != nil {
			t.Errorf("%d shards", len(open))
		}
		for to, want := range map[int]int{23: 23, 7: 7, 12: 12} {
			planned, err := plan.Uniform(layout(t, client), to, 0)
			if err == nil {
				err = reshard.Apply(t.Context(), client, stream, planned, nil)
			}
			if open := layout(t, client); err != nil || len(open) != want {
				t.Errorf("to %d: %d shards, %v", to, len(open), err)
			}
		}
	})
}

// A stream that something else has resharded is left alone, and so is one that is not there.
func TestApplyRefuses(t *testing.T) {
	inBubble(t, 3, "", func(t *testing.T, _ *runneltest.Server, client *kinesis.Client) {
		planned := oddPlan(t, 60)
		if err := reshard.Apply(t.Context(), client, stream, planned, nil); !errors.Is(err, plan.ErrLayoutDiffers) {
			t.Errorf("another layout: %v", err)
		}
		empty, err := plan.Uniform(keyspace.Uniform(4), 4, 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := reshard.Apply(t.Context(), client, stream, empty, nil); !errors.Is(err, plan.ErrLayoutDiffers) {
			t.Errorf("no steps, but another end: %v", err)
		}
		if open := layout(t, client); len(open) != 3 {
			t.Errorf("%d shards", len(open))
		}
		planned, _ = plan.Uniform(keyspace.Uniform(3), 6, 0)
		planned.Final = planned.Final[1:]
		if err := reshard.Apply(t.Context(), client, stream, planned, nil); err == nil {
			t.Error("a plan that makes no sense was applied")
		}
		if open := layout(t, client); len(open) != 3 {
			t.Errorf("%d shards", len(open))
		}
		planned, _ = plan.Uniform(keyspace.Uniform(3), 6, 0)
		if err := reshard.Apply(t.Context(), client, "nowhere", planned, nil); err == nil ||
			!strings.Contains(err.Error(), "ResourceNotFoundException") {
			t.Errorf("nowhere: %v", err)
		}
	})
}

// Where something else undoes a step, Apply does not fight it.
func TestApplyIsUndone(t *testing.T) {
	inBubble(t, 2, "", func(t *testing.T, _ *runneltest.Server, client *kinesis.Client) {
		planned, err := plan.Uniform(layout(t, client), 4, 0)
		if err != nil {
			t.Fatal(err)
		}
		err = reshard.Apply(t.Context(), client, stream, planned, func(_ plan.Step, s reshard.StepState) {
			if s == reshard.StepBegun {
				return
			}
			back, err := plan.Uniform(layout(t, client), 2, 0)
			if err == nil {
				err = reshard.Apply(t.Context(), client, stream, back, nil)
			}
			if err != nil {
				t.Error(err)
			}
		})
		if !errors.Is(err, plan.ErrLayoutDiffers) || !strings.Contains(err.Error(), "step 1, split ") ||
			len(layout(t, client)) != 2 {
			t.Errorf("got %v", err)
		}
	})
}

// lagging answers ListShards as it was at first, so many times.
type lagging struct {
	*kinesis.Client
	first *kinesis.ListShardsOutput
	left  int
}

func (l *lagging) ListShards(
	ctx context.Context, in *kinesis.ListShardsInput, o ...func(*kinesis.Options),
) (*kinesis.ListShardsOutput, error) {
	if l.left--; l.left >= 0 && l.first != nil {
		return l.first, nil
	}
	out, err := l.Client.ListShards(ctx, in, o...)
	if l.first == nil {
		l.first = out
	}
	return out, err
}

// A list of shards that lags behind the stream is waited for, but not for ever; and a step is not
// taken twice for its sake.
func TestApplyWaitsForTheList(t *testing.T) {
	for left, want := range map[int]error{1: nil, 30: nil, 1000: reshard.ErrNoEffect} {
		inBubble(t, 1, "", func(t *testing.T, _ *runneltest.Server, client *kinesis.Client) {
			planned, err := plan.Uniform(layout(t, client), 2, 0)
			if err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			err = reshard.Apply(t.Context(), &lagging{Client: client, left: left}, stream, planned, nil)
			if !errors.Is(err, want) || time.Since(began) > 3*time.Minute {
				t.Errorf("%d lists late: %v after %s", left, err, time.Since(began))
			}
			if open := layout(t, client); len(open) != 2 {
				t.Errorf("%d shards", len(open))
			}
		})
	}
}

// While a producer is busy, shards are split, merged and scaled, and every key's records are
// read in order, each once.
func TestApplyUnderLoad(t *testing.T) {
	inBubble(t, 2, "seed=3 PutRecords:lose-answer%5", func(
		t *testing.T, _ *runneltest.Server, client *kinesis.Client,
	) {
		p, err := producer.New(t.Context(), producer.Config{
			Stream: stream, Kinesis: client, Reader: client,
			Logger: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			t.Fatal(err)
		}
		const keys = 30
		var rounds int
		stop := make(chan struct{})
		var busy sync.WaitGroup
		busy.Go(func() {
			for {
				for key := range keys {
					if err := p.PutFunc(t.Context(), runnel.Record{
						PartitionKey: fmt.Sprint("k", key), Data: fmt.Appendf(nil, "%d", rounds),
					}, nil); err != nil {
						t.Error(err)
						return
					}
				}
				rounds++
				select {
				case <-stop:
					return
				case <-time.After(200 * time.Millisecond):
				}
			}
		})
		for _, n := range []int{5, 3, 6, 4} {
			planned, err := plan.Uniform(layout(t, client), n, n%2*10)
			if err == nil {
				err = reshard.Apply(t.Context(), client, stream, planned, nil)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		close(stop)
		busy.Wait()
		if err := p.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		next := map[string]int{}
		err = follow.Run(t.Context(), follow.Config{
			Stream: stream, Kinesis: client, Once: true,
			Handle: func(_ context.Context, records iter.Seq[*runnel.Record]) error {
				for r := range records {
					if got := string(r.Data); got != fmt.Sprint(next[r.PartitionKey]) {
						t.Errorf("%s: %s, want %d", r.PartitionKey, got, next[r.PartitionKey])
					}
					next[r.PartitionKey]++
				}
				return nil
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		for key := range keys {
			if n := next[fmt.Sprint("k", key)]; n != rounds {
				t.Errorf("k%d has %d records, want %d", key, n, rounds)
			}
		}
		if rounds < 100 {
			t.Errorf("%d rounds only", rounds)
		}
	})
}
