package consumer_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"os"
	"os/signal"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/consumer"
	"github.com/runnel-stream/runnel/producer"
	"github.com/runnel-stream/runnel/runneltest"
	"github.com/runnel-stream/runnel/sink/archive"
)

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// serveOrders starts a server whose stream holds three events of one order, and points the SDK's
// environment at it, as README.md does in a shell. The caller calls end.
func serveOrders() (server *runneltest.Server, end func()) {
	ctx := context.Background()
	server, err := runneltest.Start(ctx, runneltest.WithStream("orders", 4))
	check(err)
	p, err := producer.New(ctx, producer.Config{Stream: "orders", Kinesis: server.Kinesis()})
	check(err)
	for _, event := range []string{"created", "paid", "shipped"} {
		_, err := p.Put(ctx, runnel.Record{PartitionKey: "order-17", Data: []byte(event)})
		check(err)
	}
	check(p.Close(ctx))
	variables := map[string]string{
		"AWS_ENDPOINT_URL": server.Endpoint(), "AWS_REGION": "us-east-1",
		"AWS_ACCESS_KEY_ID": "any", "AWS_SECRET_ACCESS_KEY": "any",
	}
	for name, value := range variables {
		check(os.Setenv(name, value))
	}
	return server, func() {
		for name := range variables {
			check(os.Unsetenv(name))
		}
		check(server.Close())
	}
}

// Print the events of a stream, in order per key. With Once, Run returns after the last record
// that was in the stream at the start.
func Example() {
	_, end := serveOrders()
	defer end()
	once := new(true)

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	aws, err := config.LoadDefaultConfig(ctx)
	check(err)
	worker, err := consumer.New(consumer.Config{
		Stream: "orders", App: "orders-printer", Once: *once,
		Kinesis: kinesis.NewFromConfig(aws), DynamoDB: dynamodb.NewFromConfig(aws),
		Handler: func(_ context.Context, batch *consumer.Batch) error {
			for _, record := range batch.Records {
				fmt.Printf("%s %s\n", record.PartitionKey, record.Data)
			}
			return nil
		},
	})
	check(err)
	check(worker.Run(ctx)) // until interrupted; checkpoints and hands its shards back
	// Output:
	// order-17 created
	// order-17 paid
	// order-17 shipped
}

// A sink takes each record exactly once, whatever happens to the workers: here an archive.
func ExampleConfig_sink() {
	server, end := serveOrders()
	defer end()
	dir, err := os.MkdirTemp("", "archive")
	check(err)
	defer os.RemoveAll(dir)
	ctx := context.Background()
	sink, err := archive.New(archive.Config{Dir: dir})
	check(err)
	worker, err := consumer.New(consumer.Config{
		Stream: "orders", App: "orders-archive", Sink: sink, Once: true,
		Kinesis: server.Kinesis(), DynamoDB: server.DynamoDB(),
	})
	check(err)
	check(worker.Run(ctx))
	report, err := archive.Verify(ctx, dir, archive.VerifyOptions{})
	check(err)
	fmt.Println(report.Records, "records archived:", report.OK())
	// Output: 3 records archived: true
}

// Enhanced fan-out pushes records to the worker, which registers its consumer. Where that cannot be
// had, OrPoll reads on by polling.
func ExampleFanout() {
	server, end := serveOrders()
	defer end()
	ctx := context.Background()
	worker, err := consumer.New(consumer.Config{
		Stream: "orders", App: "orders-printer", Once: true,
		Kinesis: server.Kinesis(), DynamoDB: server.DynamoDB(),
		Fanout: &consumer.Fanout{OrPoll: true},
		Logger: slog.New(slog.DiscardHandler),
		Handler: func(_ context.Context, batch *consumer.Batch) error {
			for _, record := range batch.Records {
				fmt.Printf("%s %s\n", record.PartitionKey, record.Data)
			}
			return nil
		},
		OnEvent: func(e consumer.Event) {
			if e.Kind == consumer.EventPolling {
				fmt.Println("polls:", e.Err)
			}
		},
	})
	check(err)
	check(worker.Run(ctx))
	// Output:
	// order-17 created
	// order-17 paid
	// order-17 shipped
}
