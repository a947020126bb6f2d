package processes_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"
	"github.com/aws/smithy-go"
)

// The subscriber's stream, and all streams with checked records.
const subscribed = "events"

var checkedStreams = []string{"events", "bulk"}

// position is the place from which a reader with a tape continues.
func (r *serverRun) position(t *tape) (types.ShardIteratorType, *string) {
	if last := r.records.lastOf(t); last != "" {
		return types.ShardIteratorTypeAfterSequenceNumber, aws.String(last)
	}
	return types.ShardIteratorTypeTrimHorizon, nil
}

// polled is a shard that a reader polls.
type polled struct {
	tape     *tape
	iterator *string
}

// reader polls all shards of "events" from their oldest record on. An iterator outlives the
// server; now and then a new one is made.
func (r *serverRun) reader() func() outcome {
	shards := map[string]*polled{}
	random := r.source("reader")
	return func() outcome {
		listed, o := r.listShards("events")
		for _, sh := range listed {
			id := *sh.ShardId
			if shards[id] == nil {
				shards[id] = &polled{tape: r.records.tape("events/" + id)}
			}
			if random.IntN(20) == 0 {
				shards[id].iterator = nil
			}
			if o = r.poll(id, shards[id]); o != done {
				break
			}
		}
		r.pause(5 * time.Millisecond)
		return o
	}
}

// poll reads once.
func (r *serverRun) poll(id string, p *polled) outcome {
	if p.tape.ended {
		return done
	}
	if p.iterator == nil {
		kind, after := r.position(p.tape)
		o := r.call("iterator", nil, func(ctx context.Context) error {
			got, err := r.kinesis.GetShardIterator(ctx, &kinesis.GetShardIteratorInput{
				StreamName: aws.String("events"), ShardId: aws.String(id),
				ShardIteratorType: kind, StartingSequenceNumber: after,
			})
			if err == nil {
				p.iterator = got.ShardIterator
			}
			return err
		})
		if o != done {
			return o
		}
	}
	return r.call("read", nil, func(ctx context.Context) error {
		got, err := r.kinesis.GetRecords(ctx, &kinesis.GetRecordsInput{
			ShardIterator: p.iterator,
		})
		if err == nil {
			p.iterator = got.NextShardIterator
			r.records.saw(p.tape, got.Records, p.iterator == nil)
		}
		return err
	})
}

// prepareConsumer registers the subscriber, and waits until it may subscribe.
func (r *serverRun) prepareConsumer() {
	r.ask("register", func(ctx context.Context) error {
		summary, err := r.kinesis.DescribeStreamSummary(ctx,
			&kinesis.DescribeStreamSummaryInput{StreamName: aws.String(subscribed)})
		if err != nil {
			return err
		}
		got, err := r.kinesis.RegisterStreamConsumer(ctx, &kinesis.RegisterStreamConsumerInput{
			StreamARN:    summary.StreamDescriptionSummary.StreamARN,
			ConsumerName: aws.String("watch"),
		})
		if err == nil {
			r.consumer = *got.Consumer.ConsumerARN
		}
		return err
	})
	for r.consumerStatus() != types.ConsumerStatusActive {
		r.pause(5 * time.Millisecond)
	}
}

// consumerStatus asks for the subscriber. Its registration outlives the server.
func (r *serverRun) consumerStatus() (status types.ConsumerStatus) {
	r.ask("describe the consumer", func(ctx context.Context) error {
		got, err := r.kinesis.DescribeStreamConsumer(ctx, &kinesis.DescribeStreamConsumerInput{
			ConsumerARN: aws.String(r.consumer),
		})
		if err == nil {
			status = got.ConsumerDescription.ConsumerStatus
		}
		return err
	})
	return status
}

// subscriber holds one subscription at a time, until it ends or the server does; then it takes
// another shard, or goes on where it was.
func (r *serverRun) subscriber() func() outcome {
	tapes := map[string]*tape{}
	random := r.source("subscriber")
	return func() outcome {
		listed, o := r.listShards(subscribed)
		if o != done || len(listed) == 0 {
			return o
		}
		id := *listed[random.IntN(len(listed))].ShardId
		if tapes[id] == nil {
			tapes[id] = r.records.tape(subscribed + "/" + id)
		}
		if tapes[id].ended {
			r.pause(time.Millisecond)
			return done
		}
		return r.subscribe(id, tapes[id])
	}
}

// subscribe follows a shard. Within five seconds a shard cannot be subscribed to again
// (AWS, "SubscribeToShard").
func (r *serverRun) subscribe(id string, t *tape) outcome {
	kind, after := r.position(t)
	var out *kinesis.SubscribeToShardOutput
	var err error
	// A client of its own: the subscriptions of one share a buffer without a lock, also with the
	// one that is just ending (aws/smithy-go#714).
	client := r.kinesisClient()
	o := r.call("subscribe", []string{"ResourceInUseException"},
		func(context.Context) error {
			out, err = client.SubscribeToShard(r.stopped, &kinesis.SubscribeToShardInput{
				ConsumerARN: aws.String(r.consumer), ShardId: aws.String(id),
				StartingPosition: &types.StartingPosition{Type: kind, SequenceNumber: after},
			})
			return err
		})
	if o != done {
		return o
	}
	stream := out.GetStream()
	defer stream.Close()
	for event := range stream.Events() {
		e, ok := event.(*types.SubscribeToShardEventStreamMemberSubscribeToShardEvent)
		if !ok {
			r.t.Errorf("an unknown event: %T", event)
			return done
		}
		r.records.saw(t, e.Value.Records, len(e.Value.ChildShards) > 0)
		if len(e.Value.ChildShards) > 0 {
			return done
		}
	}
	var api smithy.APIError
	if err := stream.Err(); errors.As(err, &api) {
		r.t.Errorf("the subscription to %s: %v", id, err)
	}
	return unanswered
}

// checkRecords reads every shard from its oldest record on. The large records are read at the
// end only.
func (r *serverRun) checkRecords(over bool) {
	past := r.records.past()
	found := map[string][]entry{}
	streams := checkedStreams
	if !over {
		streams = streams[:1]
	}
	for _, stream := range streams {
		listed, o := r.listShards(stream)
		if o != done {
			r.t.Fatalf("list the shards of %s: no answer", stream)
		}
		for _, sh := range listed {
			name := stream + "/" + *sh.ShardId
			found[name] = r.readAll(stream, sh, past.upTo[name])
		}
	}
	r.records.compare(past, found, streams)
}

// readAll reads a shard and checks that its records belong there: a closed one to its end, an
// open one to a number, beyond which it may grow faster than it is read, or else to its tip.
func (r *serverRun) readAll(stream string, sh types.Shard, upTo string) (entries []entry) {
	var iterator *string
	r.ask("iterator", func(ctx context.Context) error {
		got, err := r.kinesis.GetShardIterator(ctx, &kinesis.GetShardIteratorInput{
			StreamName: aws.String(stream), ShardId: sh.ShardId,
			ShardIteratorType: types.ShardIteratorTypeTrimHorizon,
		})
		if err == nil {
			iterator = got.ShardIterator
		}
		return err
	})
	end := sh.SequenceNumberRange.EndingSequenceNumber
	for last := *sh.SequenceNumberRange.StartingSequenceNumber; iterator != nil; {
		var got *kinesis.GetRecordsOutput
		r.ask("read", func(ctx context.Context) (err error) {
			got, err = r.kinesis.GetRecords(ctx, &kinesis.GetRecordsInput{
				ShardIterator: iterator,
			})
			return err
		})
		more, err := entriesOf(got.Records)
		if err != nil {
			r.t.Fatalf("%s/%s: %v", stream, *sh.ShardId, err)
		}
		for _, e := range more {
			if compare(e.number, last) <= 0 {
				r.t.Errorf("%s/%s: %s stands after %s", stream, *sh.ShardId, e.number, last)
			}
			if last = e.number; !rangeOf(sh).Contains(hashKey(e.id)) {
				r.t.Errorf("%s/%s: %s has a key of another shard", stream, *sh.ShardId, e.id)
			}
		}
		entries = append(entries, more...)
		iterator = got.NextShardIterator
		if end == nil && (*got.MillisBehindLatest == 0 || compare(last, upTo) >= 0) {
			break
		}
	}
	if end != nil && len(entries) > 0 && compare(entries[len(entries)-1].number, *end) > 0 {
		r.t.Errorf("%s/%s: a record stands after its end", stream, *sh.ShardId)
	}
	return entries
}

// listShards lists a stream's shards, in the order of their names.
func (r *serverRun) listShards(stream string) (shards []types.Shard, o outcome) {
	o = r.call(fmt.Sprintf("list the shards of %s", stream), nil, func(ctx context.Context) error {
		got, err := r.kinesis.ListShards(ctx, &kinesis.ListShardsInput{
			StreamName: aws.String(stream),
		})
		if err == nil {
			shards = got.Shards
		}
		return err
	})
	return shards, o
}
