package interop

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"math/big"
	"net/http"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"
)

// goJourney makes the journey with the AWS SDK for Go v2: awsJson over TLS and HTTP/2.
type goJourney struct {
	t      *testing.T
	ctx    context.Context
	client *kinesis.Client
	stream *string

	mu        sync.Mutex
	fannedOut []string
}

func TestGoJourney(t *testing.T) {
	p := serve(t)
	authority, err := os.ReadFile(p.ca)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true,
	}
	defer transport.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(t.Context(), journeyTime)
	defer cancel()
	j := &goJourney{t: t, ctx: ctx, stream: aws.String("journey"), client: kinesis.New(kinesis.Options{
		Region:       "eu-west-1",
		BaseEndpoint: aws.String("https://" + p.addr),
		Credentials:  credentials.NewStaticCredentialsProvider(accessKeyID, secretAccessKey, ""),
		HTTPClient:   &http.Client{Transport: transport},
	})}
	c := client{name: "go", fansOut: true}
	c.check(t, j.travel())
}

func (j *goJourney) travel() result {
	_, err := j.client.CreateStream(j.ctx, &kinesis.CreateStreamInput{
		StreamName: j.stream, ShardCount: aws.Int32(2),
	})
	j.must(err)
	consumer := j.register(j.active())

	var readers sync.WaitGroup
	for _, shard := range j.shards() {
		readers.Go(func() { j.fanOut(consumer, shard) })
	}
	j.put("before")
	shards := j.shards()
	end, _ := new(big.Int).SetString(*shards[0].HashKeyRange.EndingHashKey, 10)
	_, err = j.client.SplitShard(j.ctx, &kinesis.SplitShardInput{
		StreamName: j.stream, ShardToSplit: shards[0].ShardId,
		NewStartingHashKey: aws.String(end.Rsh(end, 1).String()),
	})
	j.must(err)
	j.active()
	j.put("after")
	shards = j.shards()
	_, err = j.client.MergeShards(j.ctx, &kinesis.MergeShardsInput{
		StreamName: j.stream, ShardToMerge: shards[3].ShardId, AdjacentShardToMerge: shards[1].ShardId,
	})
	j.must(err)
	j.active()
	_, err = j.client.UpdateShardCount(j.ctx, &kinesis.UpdateShardCountInput{
		StreamName: j.stream, TargetShardCount: aws.Int32(2),
		ScalingType: types.ScalingTypeUniformScaling,
	})
	j.must(err)
	j.active()
	readers.Wait()

	r := result{}
	for _, shard := range j.shards() {
		r.Polled = append(r.Polled, j.poll(shard)...)
		switch {
		case shard.SequenceNumberRange.EndingSequenceNumber == nil:
			r.Open++
		case shard.ParentShardId != nil:
			j.fanOut(consumer, shard)
		}
	}
	_, err = j.client.DeregisterStreamConsumer(j.ctx, &kinesis.DeregisterStreamConsumerInput{
		ConsumerARN: &consumer,
	})
	j.must(err)
	_, err = j.client.DeleteStream(j.ctx, &kinesis.DeleteStreamInput{
		StreamName: j.stream, EnforceConsumerDeletion: aws.Bool(true),
	})
	j.must(err)
	r.FannedOut = j.fannedOut
	return r
}

func (j *goJourney) must(err error) {
	j.t.Helper()
	if err != nil {
		j.t.Fatal(err)
	}
}

// active waits until the stream is ACTIVE, and returns its ARN.
func (j *goJourney) active() *string {
	for {
		out, err := j.client.DescribeStreamSummary(j.ctx, &kinesis.DescribeStreamSummaryInput{
			StreamName: j.stream,
		})
		j.must(err)
		if summary := out.StreamDescriptionSummary; summary.StreamStatus == types.StreamStatusActive {
			return summary.StreamARN
		}
		j.pause()
	}
}

func (j *goJourney) register(arn *string) (consumer string) {
	out, err := j.client.RegisterStreamConsumer(j.ctx, &kinesis.RegisterStreamConsumerInput{
		StreamARN: arn, ConsumerName: aws.String("go"),
	})
	j.must(err)
	for {
		now, err := j.client.DescribeStreamConsumer(j.ctx, &kinesis.DescribeStreamConsumerInput{
			ConsumerARN: out.Consumer.ConsumerARN,
		})
		j.must(err)
		if now.ConsumerDescription.ConsumerStatus == types.ConsumerStatusActive {
			return *out.Consumer.ConsumerARN
		}
		j.pause()
	}
}

// pause waits between two checks of a state.
func (j *goJourney) pause() {
	select {
	case <-time.After(20 * time.Millisecond):
	case <-j.ctx.Done():
		j.t.Fatal(j.ctx.Err())
	}
}

func (j *goJourney) shards() []types.Shard {
	out, err := j.client.ListShards(j.ctx, &kinesis.ListShardsInput{StreamName: j.stream})
	j.must(err)
	return out.Shards
}

func (j *goJourney) put(batch string) {
	one := batch + "-one"
	_, err := j.client.PutRecord(j.ctx, &kinesis.PutRecordInput{
		StreamName: j.stream, PartitionKey: &one, ExplicitHashKey: aws.String("0"),
		Data: []byte(one + "\xff\x00"),
	})
	j.must(err)
	var entries []types.PutRecordsRequestEntry
	for i := range 20 {
		entries = append(entries, types.PutRecordsRequestEntry{
			PartitionKey: aws.String(fmt.Sprintf("%s-ключ-%d", batch, i)),
			Data:         fmt.Appendf(nil, "%s %d\xff\x00", batch, i),
		})
	}
	out, err := j.client.PutRecords(j.ctx, &kinesis.PutRecordsInput{
		StreamName: j.stream, Records: entries,
	})
	j.must(err)
	if *out.FailedRecordCount != 0 {
		j.t.Fatalf("%d records failed", *out.FailedRecordCount)
	}
}

func text(record types.Record) string {
	return *record.PartitionKey + " " + base64.StdEncoding.EncodeToString(record.Data)
}

func (j *goJourney) poll(shard types.Shard) (records []string) {
	for _, record := range j.records(shard) {
		records = append(records, text(record))
	}
	return records
}

// records reads a shard from its start to its end, or to its newest record.
func (j *goJourney) records(shard types.Shard) (records []types.Record) {
	start, err := j.client.GetShardIterator(j.ctx, &kinesis.GetShardIteratorInput{
		StreamName: j.stream, ShardId: shard.ShardId,
		ShardIteratorType: types.ShardIteratorTypeTrimHorizon,
	})
	j.must(err)
	closed := shard.SequenceNumberRange.EndingSequenceNumber != nil
	for iterator := start.ShardIterator; iterator != nil; {
		out, err := j.client.GetRecords(j.ctx, &kinesis.GetRecordsInput{
			ShardIterator: iterator, Limit: aws.Int32(7),
		})
		j.must(err)
		records = append(records, out.Records...)
		if !closed && len(out.Records) == 0 && *out.MillisBehindLatest == 0 {
			break
		}
		iterator = out.NextShardIterator
	}
	return records
}

// fanOut reads a shard to its end, up to the event that names its children. Each subscription has a
// separate client: see docs/serve.md on the Go SDK.
func (j *goJourney) fanOut(consumer string, shard types.Shard) {
	client := kinesis.New(j.client.Options())
	out, err := client.SubscribeToShard(j.ctx, &kinesis.SubscribeToShardInput{
		ConsumerARN: &consumer, ShardId: shard.ShardId,
		StartingPosition: &types.StartingPosition{Type: types.ShardIteratorTypeTrimHorizon},
	})
	if err != nil {
		j.t.Errorf("subscribe to %s: %v", *shard.ShardId, err)
		return
	}
	stream := out.GetStream()
	defer func() { _ = stream.Close() }()
	for event := range stream.Events() {
		member, ok := event.(*types.SubscribeToShardEventStreamMemberSubscribeToShardEvent)
		if !ok {
			j.t.Errorf("subscription of %s: event %T", *shard.ShardId, event)
			return
		}
		j.mu.Lock()
		for _, record := range member.Value.Records {
			j.fannedOut = append(j.fannedOut, text(record))
		}
		j.mu.Unlock()
		if len(member.Value.ChildShards) > 0 {
			return
		}
	}
	j.t.Errorf("subscription of %s ended before the shard: %v", *shard.ShardId, stream.Err())
}
