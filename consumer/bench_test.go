package consumer_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/runnel-stream/runnel/consumer"
	"github.com/runnel-stream/runnel/runneltest"
)

// BenchmarkOnce reads a stream of 20,000 records of 1 KiB in four shards from its beginning,
// by one worker over a loopback socket, leases and checkpoints included.
func BenchmarkOnce(b *testing.B) {
	const calls, perCall, size = 40, 500, 1 << 10
	server := runneltest.NewServer(b, runneltest.WithStream("orders", 4))
	for call := range calls {
		in := &kinesis.PutRecordsInput{StreamName: aws.String("orders")}
		for i := range perCall {
			in.Records = append(in.Records, types.PutRecordsRequestEntry{
				PartitionKey: aws.String(fmt.Sprint(call, "-", i)), Data: make([]byte, size),
			})
		}
		if _, err := server.Kinesis().PutRecords(b.Context(), in); err != nil {
			b.Fatal(err)
		}
	}
	b.SetBytes(calls * perCall * size)
	b.ReportAllocs()
	var app int
	for b.Loop() {
		app++
		var n atomic.Int64
		w, err := consumer.New(consumer.Config{
			Stream: "orders", App: fmt.Sprint("app-", app), Once: true,
			Kinesis: server.Kinesis(), DynamoDB: server.DynamoDB(),
			Handler: func(_ context.Context, batch *consumer.Batch) error {
				n.Add(int64(len(batch.Records)))
				return nil
			},
		})
		if err == nil {
			err = w.Run(b.Context())
		}
		if err != nil || n.Load() != calls*perCall {
			b.Fatalf("%d records, %v", n.Load(), err)
		}
	}
	b.ReportMetric(float64(b.N)*calls*perCall/b.Elapsed().Seconds(), "records/s")
}
