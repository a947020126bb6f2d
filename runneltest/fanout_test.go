package runneltest_test

import (
	"errors"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/runnel-stream/runnel/runneltest"
)

// The SDK reads an enhanced fan-out subscription: records as they arrive, then the end of the
// shard with its children, then a clean end. It gets an exception if the consumer is deregistered.
func TestFanOut(t *testing.T) {
	srv := runneltest.NewServer(t, runneltest.WithStream(stream, 1),
		runneltest.WithStreamDelay(-1))
	ctx, client := t.Context(), kinesis.NewFromConfig(srv.AWSConfig())
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	summary, err := client.DescribeStreamSummary(ctx,
		&kinesis.DescribeStreamSummaryInput{StreamName: aws.String(stream)})
	must(err)
	registered, err := client.RegisterStreamConsumer(ctx, &kinesis.RegisterStreamConsumerInput{
		StreamARN: summary.StreamDescriptionSummary.StreamARN, ConsumerName: aws.String("app"),
	})
	must(err)
	app := registered.Consumer.ConsumerARN
	subscribe := func(shard string) *kinesis.SubscribeToShardEventStream {
		t.Helper()
		out, err := client.SubscribeToShard(ctx, &kinesis.SubscribeToShardInput{
			ConsumerARN: app, ShardId: aws.String(shard),
			StartingPosition: &types.StartingPosition{Type: types.ShardIteratorTypeTrimHorizon},
		})
		must(err)
		return out.GetStream()
	}
	next := func(events *kinesis.SubscribeToShardEventStream) types.SubscribeToShardEvent {
		t.Helper()
		e, ok := (<-events.Events()).(*types.SubscribeToShardEventStreamMemberSubscribeToShardEvent)
		if !ok {
			t.Fatalf("the events have ended: %v", events.Err())
		}
		return e.Value
	}

	must(put(ctx, client, "k", "one"))
	events := subscribe("shardId-000000000000")
	for i, want := range []string{"one", "two", "three"} {
		if i > 0 {
			must(put(ctx, client, "k", want))
		}
		e := next(events)
		if len(e.Records) != 1 || string(e.Records[0].Data) != want ||
			*e.MillisBehindLatest != 0 || e.ContinuationSequenceNumber == nil {
			t.Errorf("the event is %+v, want %s", e, want)
		}
	}
	_, err = client.SplitShard(ctx, &kinesis.SplitShardInput{
		StreamName: aws.String(stream), ShardToSplit: aws.String("shardId-000000000000"),
		NewStartingHashKey: aws.String("170141183460469231731687303715884105728"),
	})
	must(err)
	if e := next(events); len(e.ChildShards) != 2 || e.ContinuationSequenceNumber != nil {
		t.Errorf("the shard's end is %+v", e)
	}
	if e, more := <-events.Events(); more || events.Err() != nil {
		t.Errorf("after the end there is %v, %v", e, events.Err())
	}
	must(events.Close())

	events = subscribe("shardId-000000000001")
	next(events)
	_, err = client.DeregisterStreamConsumer(ctx,
		&kinesis.DeregisterStreamConsumerInput{ConsumerARN: app})
	must(err)
	e, more := <-events.Events()
	if gone := new(types.ResourceNotFoundException); more || !errors.As(events.Err(), &gone) {
		t.Errorf("after the deregistration there is %v, %v", e, events.Err())
	}
	_ = events.Close()
}
