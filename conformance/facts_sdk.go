package main

import (
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"
)

// goSDK is the code that these facts are about.
var goSDK = reliedOnBy("AWS SDK for Go v2, service/kinesis")

// sdkFacts show that AWS's own client understands the answers. Their source is the SDK's code.
func sdkFacts() []fact {
	return []fact{
		{
			"sdk/round-trip", "", "The Go SDK puts records and reads them back.", goSDK, nothing,
			func(c *check) {
				put, err := c.sdk.PutRecord(c.ctx, &kinesis.PutRecordInput{
					StreamName: aws.String(c.main().name), PartitionKey: aws.String("sdk"),
					ExplicitHashKey: aws.String(maxHashKey), Data: []byte("from the SDK"),
				})
				c.want(err == nil, "PutRecord succeeds", err)
				iterator, err := c.sdk.GetShardIterator(c.ctx, &kinesis.GetShardIteratorInput{
					StreamName: aws.String(c.main().name), ShardId: put.ShardId,
					ShardIteratorType:      types.ShardIteratorTypeAtSequenceNumber,
					StartingSequenceNumber: put.SequenceNumber,
				})
				c.want(err == nil, "GetShardIterator succeeds", err)
				var record *types.Record
				next := iterator.ShardIterator
				c.eventually("the record can be read", func() bool {
					page, err := c.sdk.GetRecords(c.ctx,
						&kinesis.GetRecordsInput{ShardIterator: next})
					c.want(err == nil, "GetRecords succeeds", err)
					next = page.NextShardIterator
					if len(page.Records) > 0 {
						record = &page.Records[0]
					}
					return record != nil
				})
				c.equal("Data", string(record.Data), "from the SDK")
				age := time.Since(aws.ToTime(record.ApproximateArrivalTimestamp))
				c.want(age > -time.Minute && age < time.Hour, "an arrival time of now",
					age.String())
			},
		},
		{
			"sdk/errors", "", "The Go SDK knows a modelled error by its type.", goSDK, nothing,
			func(c *check) {
				_, err := c.sdk.DescribeStreamSummary(c.ctx, &kinesis.DescribeStreamSummaryInput{
					StreamName: aws.String(c.absent()),
				})
				var absent *types.ResourceNotFoundException
				c.want(errors.As(err, &absent), "ResourceNotFoundException", err)
				c.equal("message", absent.ErrorMessage(), c.notFound(c.absent()))
			},
		},
	}
}

// sdkFanOut is about event streams.
func sdkFanOut() []fact {
	return []fact{
		{
			"sdk/fan-out", subscribeToShard, "The Go SDK reads an event stream.", goSDK, nothing,
			func(c *check) {
				arn := c.consumer(c.fanOut().arn, "sdk")
				out, err := c.sdk.SubscribeToShard(c.ctx, &kinesis.SubscribeToShardInput{
					ConsumerARN: aws.String(arn), ShardId: aws.String(shardID(0)),
					StartingPosition: &types.StartingPosition{
						Type: types.ShardIteratorTypeTrimHorizon,
					},
				})
				c.want(err == nil, "SubscribeToShard succeeds", err)
				stream := out.GetStream()
				defer func() { _ = stream.Close() }()
				timer := time.NewTimer(c.eventTime())
				defer timer.Stop()
				select {
				case event := <-stream.Events():
					e, ok := event.(*types.SubscribeToShardEventStreamMemberSubscribeToShardEvent)
					c.want(ok, "a SubscribeToShardEvent", event)
					c.want(len(e.Value.Records) > 0, "records", e.Value)
				case <-timer.C:
					c.want(false, "an event within "+c.eventTime().String(), "none")
				}
			},
		},
	}
}
