package main

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/runnel-stream/runnel/bench/internal/process"
)

// createStream makes the stream and waits until it is ACTIVE.
func createStream(ctx context.Context, p *running) error {
	setup := newSDK(p.endpoint)
	defer setup.close()
	_, err := setup.kinesis.CreateStream(ctx, &kinesis.CreateStreamInput{
		StreamName: aws.String(stream), ShardCount: aws.Int32(shards),
	})
	if err != nil {
		return err
	}
	waiter := kinesis.NewStreamExistsWaiter(setup.kinesis,
		func(o *kinesis.StreamExistsWaiterOptions) {
			o.MinDelay, o.MaxDelay = 20*time.Millisecond, time.Second
		})
	return waiter.Wait(ctx, &kinesis.DescribeStreamInput{StreamName: aws.String(stream)},
		process.StartTime)
}
