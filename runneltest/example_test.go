package runneltest_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/runnel-stream/runnel/runneltest"
)

// A producer that retries until it gets an answer stores a record twice if the first answer is
// lost: delivery is at least once, as on AWS.
func ExampleWithFaults() {
	ctx := context.Background()
	server, err := runneltest.Start(ctx, runneltest.WithStream("orders", 1),
		runneltest.WithFaults("PutRecord:lose-answer@1"))
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	client := kinesis.NewFromConfig(server.AWSConfig(), func(o *kinesis.Options) {
		o.Retryer = aws.NopRetryer{} // it is this example that tries again
	})
	for answered := false; !answered; {
		_, err := client.PutRecord(ctx, &kinesis.PutRecordInput{
			StreamName: aws.String("orders"), PartitionKey: aws.String("customer-7"),
			Data: []byte("one order"),
		})
		answered = err == nil
	}
	iterator, err := client.GetShardIterator(ctx, &kinesis.GetShardIteratorInput{
		StreamName: aws.String("orders"), ShardId: aws.String("shardId-000000000000"),
		ShardIteratorType: types.ShardIteratorTypeTrimHorizon,
	})
	if err != nil {
		log.Fatal(err)
	}
	got, err := client.GetRecords(ctx, &kinesis.GetRecordsInput{
		ShardIterator: iterator.ShardIterator,
	})
	if err != nil {
		log.Fatal(err)
	}
	for _, record := range got.Records {
		fmt.Printf("%s\n", record.Data)
	}
	fmt.Println(server.FaultCounts())
	// Output:
	// one order
	// one order
	// map[PutRecord:lose-answer:1]
}

// A correct producer checks every entry of PutRecords' answer and sends the failed ones again.
func ExampleServer_SetFaults() {
	ctx := context.Background()
	server, err := runneltest.Start(ctx, runneltest.WithStream("orders", 1))
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	if err := server.SetFaults("PutRecords:throttle-record=2@1"); err != nil {
		log.Fatal(err)
	}
	var batch []types.PutRecordsRequestEntry
	for _, data := range []string{"first", "second", "third"} {
		batch = append(batch, types.PutRecordsRequestEntry{
			PartitionKey: aws.String(data), Data: []byte(data),
		})
	}
	for len(batch) > 0 {
		out, err := server.Kinesis().PutRecords(ctx, &kinesis.PutRecordsInput{
			StreamName: aws.String("orders"), Records: batch,
		})
		if err != nil {
			log.Fatal(err)
		}
		var failed []types.PutRecordsRequestEntry
		for i, result := range out.Records {
			if result.ErrorCode != nil {
				fmt.Printf("%s: %s\n", batch[i].Data, *result.ErrorCode)
				failed = append(failed, batch[i])
			}
		}
		batch = failed
	}
	fmt.Println("all stored")
	// Output:
	// second: ProvisionedThroughputExceededException
	// all stored
}

// A power cut loses nothing that was acknowledged.
func ExampleServer_Kill() {
	ctx := context.Background()
	server, err := runneltest.Start(ctx, runneltest.WithStream("orders", 1),
		runneltest.WithCrashes(7))
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	put := func(data string) error {
		_, err := server.Kinesis().PutRecord(ctx, &kinesis.PutRecordInput{
			StreamName: aws.String("orders"), PartitionKey: aws.String("customer-7"),
			Data: []byte(data),
		})
		return err
	}
	fmt.Println(put("before"))
	if err := errors.Join(server.Kill(), server.Restart(ctx)); err != nil {
		log.Fatal(err)
	}
	fmt.Println(put("after"))
	summary, err := server.Kinesis().DescribeStreamSummary(ctx, &kinesis.DescribeStreamSummaryInput{
		StreamName: aws.String("orders"),
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(*summary.StreamDescriptionSummary.OpenShardCount, "shard")
	// Output:
	// <nil>
	// <nil>
	// 1 shard
}

// A limit refuses what AWS refuses, at a size that a test reaches.
func ExampleWithLimits() {
	ctx := context.Background()
	server, err := runneltest.Start(ctx, runneltest.WithStream("orders", 1),
		runneltest.WithLimits("write-records=2"))
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	entry := types.PutRecordsRequestEntry{PartitionKey: aws.String("k"), Data: []byte("d")}
	answer, err := server.Kinesis().PutRecords(ctx, &kinesis.PutRecordsInput{
		StreamName: aws.String("orders"),
		Records:    []types.PutRecordsRequestEntry{entry, entry, entry},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(*answer.FailedRecordCount, "record:", *answer.Records[2].ErrorCode)
	// Output: 1 record: ProvisionedThroughputExceededException
}
