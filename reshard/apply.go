package reshard

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/awserr"
	"github.com/runnel-stream/runnel/internal/retry"
	"github.com/runnel-stream/runnel/internal/shardmap"
	"github.com/runnel-stream/runnel/internal/streamref"
	"github.com/runnel-stream/runnel/keyspace"
	"github.com/runnel-stream/runnel/keyspace/plan"
)

// Resharder is the part of the Kinesis API that Apply uses. *kinesis.Client implements it; the
// SDK's own retries do no harm.
type Resharder interface {
	Lister
	DescribeStreamSummary(context.Context, *kinesis.DescribeStreamSummaryInput,
		...func(*kinesis.Options)) (*kinesis.DescribeStreamSummaryOutput, error)
	SplitShard(context.Context, *kinesis.SplitShardInput, ...func(*kinesis.Options)) (
		*kinesis.SplitShardOutput, error)
	MergeShards(context.Context, *kinesis.MergeShardsInput, ...func(*kinesis.Options)) (
		*kinesis.MergeShardsOutput, error)
	UpdateShardCount(context.Context, *kinesis.UpdateShardCountInput,
		...func(*kinesis.Options)) (*kinesis.UpdateShardCountOutput, error)
}

// StepState is the progress of a step.
type StepState string

// The states of a step, in this order: StepFound, or else StepBegun and StepDone.
const (
	StepFound StepState = "found" // it was done already
	StepBegun StepState = "begun" // the call is about to be made
	StepDone  StepState = "done"  // its shards are open, the stream is ACTIVE
)

// ErrNoEffect is returned if a call succeeded, but the shards did not change.
var ErrNoEffect = errors.New("the call was answered, but the open shards are as before")

// settleTime is the longest time that the list of shards may lag behind the status ACTIVE.
const settleTime = time.Minute

// Apply carries out the steps of a plan, one at a time, each while the stream is ACTIVE. It
// returns when the shards of the last step are open and match the plan. It skips steps that are
// done already, so an interrupted Apply is continued by another Apply with the same plan. It
// waits for ACTIVE until ctx ends. Throttling, other operations on the stream and outages are
// retried for about a minute for each call.
//
// Apply calls progress for each step, in order, from its own goroutine. progress may be nil.
//
// An error names the step. It is an error of the API that a retry does not help, as for a stream
// in on-demand mode or at the account's limit of shards. Or it wraps plan.ErrLayoutDiffers: the
// stream's shards match neither the start of the plan nor any of its steps, because something
// else reshards the stream. Apply undoes nothing.
func Apply(
	ctx context.Context, client Resharder, stream string, planned plan.Plan,
	progress func(plan.Step, StepState),
) error {
	if err := planned.Validate(); err != nil {
		return fmt.Errorf("reshard stream %s: %w", stream, err)
	}
	if progress == nil {
		progress = func(plan.Step, StepState) {}
	}
	a := &applying{client: client, stream: stream, plan: planned, progress: progress}
	if err := a.run(ctx); err != nil {
		return fmt.Errorf("reshard stream %s: %w", stream, err)
	}
	return nil
}

// applying is the state of one call of Apply.
type applying struct {
	client   Resharder
	stream   string
	plan     plan.Plan
	progress func(plan.Step, StepState)
}

func (a *applying) run(ctx context.Context) error {
	for at := 0; ; at++ {
		open, err := a.open(ctx)
		if err != nil {
			return err
		}
		next := a.plan.Next(ranges(open))
		if next < at {
			return fmt.Errorf("step %d, %s, is not done any more: %w; something else reshards "+
				"the stream: make a new plan", next+1, a.plan.Steps[next], plan.ErrLayoutDiffers)
		}
		for ; at < next; at++ {
			a.progress(a.plan.Steps[at], StepFound)
		}
		if at == len(a.plan.Steps) {
			if err := a.plan.Reached(ranges(open)); err != nil {
				return fmt.Errorf("all steps are done, but %w; something else has resharded "+
					"the stream: make a new plan", err)
			}
			return nil
		}
		step := a.plan.Steps[at]
		call, err := a.call(step, open)
		if err == nil {
			a.progress(step, StepBegun)
			err = a.take(ctx, at, call)
		}
		if err != nil {
			return fmt.Errorf("step %d of %d, %s: %w", at+1, len(a.plan.Steps), step, err)
		}
		a.progress(step, StepDone)
	}
}

// take calls the API until the step is done.
func (a *applying) take(ctx context.Context, at int, call func(context.Context) error) error {
	for failed := 1; ; failed++ {
		wrong := once(ctx, call)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if wrong == nil {
			return a.settle(ctx, at)
		}
		if awserr.Kinesis.Transient(wrong) {
			if err := backoff.Wait(ctx, failed); err != nil {
				return err
			}
		}
		// The answer may have been lost although the step is done.
		open, err := a.open(ctx)
		switch {
		case err != nil:
			return errors.Join(wrong, err)
		case a.plan.Next(ranges(open)) > at:
			return nil
		case failed == attempts || !awserr.Kinesis.Transient(wrong):
			return wrong
		}
	}
}

// call returns a function that makes the API call of a step on the open shards.
func (a *applying) call(
	step plan.Step, open []runnel.Shard,
) (func(context.Context) error, error) {
	ids := make([]*string, len(step.From))
	for i, r := range step.From {
		for _, s := range open {
			if s.Range == r {
				ids[i] = aws.String(string(s.ID))
			}
		}
		if ids[i] == nil {
			return nil, fmt.Errorf("%w: no shard of %s is open; something else has resharded "+
				"the stream: make a new plan", plan.ErrLayoutDiffers, r)
		}
	}
	name, arn := streamref.Target(a.stream)
	switch step.Kind {
	case plan.StepSplit:
		in := &kinesis.SplitShardInput{
			StreamName: name, StreamARN: arn, ShardToSplit: ids[0],
			NewStartingHashKey: aws.String(step.Bound().String()),
		}
		return func(ctx context.Context) error {
			_, err := a.client.SplitShard(ctx, in)
			return err
		}, nil
	case plan.StepMerge:
		in := &kinesis.MergeShardsInput{
			StreamName: name, StreamARN: arn,
			ShardToMerge: ids[0], AdjacentShardToMerge: ids[1],
		}
		return func(ctx context.Context) error {
			_, err := a.client.MergeShards(ctx, in)
			return err
		}, nil
	default:
		in := &kinesis.UpdateShardCountInput{
			StreamName: name, StreamARN: arn, TargetShardCount: aws.Int32(int32(step.Shards)),
			ScalingType: types.ScalingTypeUniformScaling,
		}
		return func(ctx context.Context) error {
			_, err := a.client.UpdateShardCount(ctx, in)
			return err
		}, nil
	}
}

// settle waits until a step is done after its call succeeded.
func (a *applying) settle(ctx context.Context, at int) error {
	var since time.Time
	for {
		open, err := a.open(ctx)
		if err != nil {
			return err
		}
		if a.plan.Next(ranges(open)) > at {
			return nil
		}
		if since.IsZero() {
			since = time.Now()
		} else if time.Since(since) > settleTime {
			return ErrNoEffect
		}
		if err := retry.Wait(ctx, time.Second); err != nil {
			return err
		}
	}
}

// open waits until the stream is ACTIVE and returns its open shards.
func (a *applying) open(ctx context.Context) ([]runnel.Shard, error) {
	for looks := 1; ; looks++ {
		var status types.StreamStatus
		err := persist(ctx, func(ctx context.Context) error {
			out, err := a.client.DescribeStreamSummary(ctx, streamref.Describe(a.stream))
			if err == nil {
				status = out.StreamDescriptionSummary.StreamStatus
			}
			return err
		})
		switch {
		case err != nil:
			return nil, err
		case status == types.StreamStatusDeleting:
			return nil, errors.New("the stream is being deleted")
		case status == types.StreamStatusActive:
			return shardmap.List(ctx, a.client, a.stream,
				&types.ShardFilter{Type: types.ShardFilterTypeAtLatest})
		}
		if err := activePoll.Wait(ctx, looks); err != nil {
			return nil, err
		}
	}
}

// activePoll is the wait between two looks at a stream that is not ACTIVE.
var activePoll = retry.Backoff{Min: 200 * time.Millisecond, Max: 2 * time.Second}

func ranges(shards []runnel.Shard) []keyspace.Range {
	all := make([]keyspace.Range, len(shards))
	for i, s := range shards {
		all[i] = s.Range
	}
	return all
}
