package pages

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"
	"github.com/aws/smithy-go/middleware"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/awscbor"
	"github.com/runnel-stream/runnel/internal/retry"
)

var errInUse = &types.ResourceInUseException{Message: aws.String("another active subscription")}

// fakeConsumer subscribes to a fake's shard by AWS's rules: no second subscription within five
// seconds, an event at least every five seconds, an end after five minutes.
type fakeConsumer struct {
	*fake
	mu sync.Mutex // guards the fake

	ready   error
	refuse  func() error // may refuse a subscription
	silent  bool         // connections carry no event
	noNext  bool         // events have no continuation
	perPage int          // records an event; 0: two
	began   time.Time
	live    *fakeEvents

	starts []string // where subscriptions began: a type and a number
	polled []error  // reasons
	held   []bool   // taken, of each question
	failed []error
}

type fakeEvents struct {
	ch   chan types.SubscribeToShardEventStream
	ctx  context.Context
	end  context.CancelCauseFunc
	mu   sync.Mutex
	err  error
	life time.Time
}

func (e *fakeEvents) Events() <-chan types.SubscribeToShardEventStream { return e.ch }

func (e *fakeEvents) Close() error {
	e.end(nil)
	return nil
}

func (e *fakeEvents) Err() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.err
}

// finish ends the event stream; err is what its reader sees.
func (e *fakeEvents) finish(err error) {
	e.mu.Lock()
	e.err = err
	e.mu.Unlock()
	e.end(nil)
}

func (c *fakeConsumer) Ready(context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ready
}

// becomes sets the result of Ready.
func (c *fakeConsumer) becomes(ready error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ready = ready
}

func (c *fakeConsumer) Subscribe(
	ctx context.Context, in *kinesis.SubscribeToShardInput,
) (Events, middleware.Metadata, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := in.StartingPosition
	index, number := 0, aws.ToString(at.SequenceNumber)
	switch at.Type {
	case types.ShardIteratorTypeLatest:
		index = len(c.records)
	case types.ShardIteratorTypeAtTimestamp:
		index = c.first(func(r *types.Record) bool {
			return !r.ApproximateArrivalTimestamp.Before(*at.Timestamp)
		})
	case types.ShardIteratorTypeAtSequenceNumber:
		index = c.first(func(r *types.Record) bool { return *r.SequenceNumber >= number })
	case types.ShardIteratorTypeAfterSequenceNumber:
		index = c.first(func(r *types.Record) bool { return *r.SequenceNumber > number })
	}
	c.starts = append(c.starts, string(at.Type)+number)
	if c.refuse != nil {
		if err := c.refuse(); err != nil {
			return nil, middleware.Metadata{}, err
		}
	}
	if time.Since(c.began) < 5*time.Second {
		return nil, middleware.Metadata{}, errInUse
	}
	if c.live != nil {
		c.live.finish(errInUse)
	}
	metadata, err := c.call("subscribe", "")
	if err != nil {
		return nil, metadata, err
	}
	c.began = time.Now()
	e := &fakeEvents{
		ch: make(chan types.SubscribeToShardEventStream), life: c.began.Add(5 * time.Minute),
	}
	e.ctx, e.end = context.WithCancelCause(ctx)
	c.live = e
	go c.send(e, index)
	return e, metadata, nil
}

// send sends the events of a subscription.
func (c *fakeConsumer) send(e *fakeEvents, index int) {
	defer close(e.ch)
	for due := time.Now(); time.Now().Before(e.life) && e.ctx.Err() == nil; {
		event, next := c.event(index, !time.Now().Before(due))
		if event == nil {
			select {
			case <-time.After(100 * time.Millisecond):
				continue
			case <-e.ctx.Done():
				return
			}
		}
		select {
		case e.ch <- &types.SubscribeToShardEventStreamMemberSubscribeToShardEvent{Value: *event}:
		case <-e.ctx.Done():
			return
		}
		index, due = next, time.Now().Add(5*time.Second)
		if len(event.ChildShards) > 0 {
			return
		}
	}
}

func (c *fakeConsumer) event(index int, due bool) (*types.SubscribeToShardEvent, int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	index = max(index, c.trimmed)
	end := min(index+max(2, c.perPage), len(c.records))
	ended := c.closed && index == len(c.records)
	if c.silent || index == end && !due && !ended {
		return nil, index
	}
	e := &types.SubscribeToShardEvent{
		Records:            slices.Clone(c.records[index:end]),
		MillisBehindLatest: aws.Int64(int64(1000 * (len(c.records) - end))),
	}
	switch {
	case ended && !c.noNext:
		e.ChildShards = []types.ChildShard{{
			ShardId: aws.String("child"), ParentShards: []string{"a"},
			HashKeyRange: &types.HashKeyRange{
				StartingHashKey: aws.String("0"), EndingHashKey: aws.String("9"),
			},
		}}
	case !c.noNext:
		e.ContinuationSequenceNumber = aws.String(strconv.Itoa(99 + end))
	}
	return e, end
}

// add puts n records.
func (c *fakeConsumer) add(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.put(n)
}

// trim removes all records but the last.
func (c *fakeConsumer) trim(left int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.trimmed = len(c.records) - left
}

func (c *fakeConsumer) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
}

// cut breaks the connection of the subscription under way.
func (c *fakeConsumer) cut(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.live.finish(err)
}

// The calls of polling, and those of the Stream, run beside subscriptions.

func (c *fakeConsumer) GetShardIterator(
	ctx context.Context, in *kinesis.GetShardIteratorInput, o ...func(*kinesis.Options),
) (*kinesis.GetShardIteratorOutput, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.fake.GetShardIterator(ctx, in, o...)
}

func (c *fakeConsumer) GetRecords(
	ctx context.Context, in *kinesis.GetRecordsInput, o ...func(*kinesis.Options),
) (*kinesis.GetRecordsOutput, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	out, err := c.fake.GetRecords(ctx, in, o...)
	if err == nil && out.NextShardIterator == nil {
		out.ChildShards = []types.ChildShard{{
			ShardId: aws.String("child"), ParentShards: []string{"a"},
			HashKeyRange: &types.HashKeyRange{
				StartingHashKey: aws.String("0"), EndingHashKey: aws.String("9"),
			},
		}}
	}
	return out, err
}

// config returns the configuration of a source over the fake's shard.
func (c *fakeConsumer) config(from runnel.From) Config {
	return Config{
		Kinesis: awscbor.New(c), Stream: "s", Shard: "a", From: from, Of: c.fake, Gaps: true, Persist: true,
		Pace:      Pace{Idle: 250 * time.Millisecond},
		Backoff:   retry.Backoff{Min: 100 * time.Millisecond, Max: time.Second},
		OnFailure: func(err error, _ int) { c.failed = append(c.failed, err) },
	}
}

// source makes a subscription that is closed at the end of the test.
func (c *fakeConsumer) source(
	t *testing.T, from runnel.From, change ...func(*Fanout),
) *Subscription {
	fan := Fanout{
		Subscriber: c, OnPolling: func(err error) { c.polled = append(c.polled, err) },
		Held: func(_ context.Context, taken bool) error {
			c.held = append(c.held, taken)
			return nil
		},
	}
	for _, f := range change {
		f(&fan)
	}
	s := NewSubscription(c.config(from), fan)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func orPoll(f *Fanout) { f.OrPoll = true }
