package consumer_test

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"

	"github.com/runnel-stream/runnel/consumer"
)

// Show the state of a worker, at any time and from any goroutine: here from its handler.
func ExampleWorker_Status() {
	server, end := serveOrders()
	defer end()
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	var worker *consumer.Worker
	worker, err := consumer.New(consumer.Config{
		Stream: "orders", App: "orders-shown", Once: true,
		Kinesis: server.Kinesis(), DynamoDB: server.DynamoDB(),
		Handler: func(_ context.Context, batch *consumer.Batch) error {
			for _, shard := range worker.Status().Shards {
				if shard.Shard == batch.ShardID {
					fmt.Println(shard.State, !shard.HandlerSince.IsZero(), shard.Records)
				}
			}
			return nil
		},
	})
	check(err)
	check(worker.Run(ctx))
	status := worker.Status()
	fmt.Println(status.Records, "records,", status.Bytes, "bytes, running:", status.Running)
	text, err := json.Marshal(consumer.ShardStatus{State: consumer.ShardPaused, Records: 3})
	check(err)
	fmt.Println(string(text))
	// Output:
	// reading true 0
	// 3 records, 18 bytes, running: false
	// {"shard":"","state":"paused","position":"start","millis_behind_latest":0,"checkpoint":"start","checkpoint_age_millis":0,"handler_millis":0,"records":3,"bytes":0,"retries":0,"throttles":0}
}

// Publish a worker's numbers to CloudWatch. The server here takes them, too, and shows them at its
// GET /metrics.
func ExampleCloudWatch() {
	server, end := serveOrders()
	defer end()
	worker, err := consumer.New(consumer.Config{
		Stream: "orders", App: "orders-published", Once: true,
		Kinesis: server.Kinesis(), DynamoDB: server.DynamoDB(),
		Handler: func(context.Context, *consumer.Batch) error { return nil },
		CloudWatch: &consumer.CloudWatch{
			API: cloudwatch.NewFromConfig(server.AWSConfig()), Namespace: "Orders",
		},
	})
	check(err)
	check(worker.Run(context.Background()))
	fmt.Println(worker.Status().Records, "records")
	// Output: 3 records
}
