package producer_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/producer"
	"github.com/runnel-stream/runnel/runneltest"
)

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// serve starts a server and sets the SDK's environment for it, as README.md does in a shell. The
// caller calls end.
func serve(options ...runneltest.Option) (server *runneltest.Server, end func()) {
	server, err := runneltest.Start(context.Background(),
		append(options, runneltest.WithStream("orders", 4))...)
	check(err)
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

// Put three events of one order. Close waits until all are in the stream, and reports failures.
func Example() {
	_, end := serve()
	defer end()

	ctx := context.Background()
	aws, err := config.LoadDefaultConfig(ctx)
	check(err)
	client := kinesis.NewFromConfig(aws)
	p, err := producer.New(ctx, producer.Config{Stream: "orders", Kinesis: client})
	check(err)
	for _, event := range []string{"created", "paid", "shipped"} {
		_, err := p.Put(ctx, runnel.Record{PartitionKey: "order-17", Data: []byte(event)})
		check(err)
	}
	check(p.Close(ctx)) // delivers or reports every record

	stats := p.Stats()
	fmt.Println(stats.Delivered, "delivered,", stats.Undelivered, "undelivered")
	// Output: 3 delivered, 0 undelivered
}

// A callback gets each result, in the order of the key.
func ExampleProducer_PutFunc() {
	server, end := serve()
	defer end()
	ctx := context.Background()
	p, err := producer.New(ctx, producer.Config{Stream: "orders", Kinesis: server.Kinesis()})
	check(err)
	for _, event := range []string{"created", "paid", "shipped"} {
		record := runnel.Record{PartitionKey: "order-17", Data: []byte(event)}
		check(p.PutFunc(ctx, record, func(result producer.Result) {
			fmt.Println(event, result.Err, "in", result.ShardID)
		}))
	}
	check(p.Close(ctx))
	// Output:
	// created <nil> in shardId-000000000000
	// paid <nil> in shardId-000000000000
	// shipped <nil> in shardId-000000000000
}

// A Future is the result of one record. Wait waits for it.
func ExampleFuture_Wait() {
	server, end := serve()
	defer end()
	ctx := context.Background()
	p, err := producer.New(ctx, producer.Config{Stream: "orders", Kinesis: server.Kinesis()})
	check(err)
	future, err := p.Put(ctx, runnel.Record{PartitionKey: "order-17", Data: []byte("created")})
	check(err)
	result, err := future.Wait(ctx)
	fmt.Println(result.Attempts, "attempt,", result.Unknown, "without an answer:", err)
	check(p.Close(ctx))
	// Output: 1 attempt, 0 without an answer: <nil>
}

// The answer of the first attempt is lost, so the producer sends the same bytes again. The stream
// then has a duplicate, which runnel's consumers drop.
func ExampleResult() {
	server, end := serve(runneltest.WithFaults("PutRecords:lose-answer@1"))
	defer end()
	ctx := context.Background()
	p, err := producer.New(ctx, producer.Config{
		Stream: "orders", Kinesis: server.Kinesis(), RetryMin: time.Millisecond,
	})
	check(err)
	future, err := p.Put(ctx, runnel.Record{PartitionKey: "order-17", Data: []byte("paid")})
	check(err)
	result, err := future.Wait(ctx)
	fmt.Println(result.Attempts, "attempts,", result.Unknown, "without an answer:", err)
	check(p.Close(ctx))
	// Output: 2 attempts, 1 without an answer: <nil>
}

// The stream does not exist, so the refusal is one of the caller and not of the record.
func ExampleUndeliveredError() {
	server, end := serve()
	defer end()
	ctx := context.Background()
	p, err := producer.New(ctx, producer.Config{Stream: "typo", Kinesis: server.Kinesis()})
	check(err)
	future, err := p.Put(ctx, runnel.Record{PartitionKey: "order-17", Data: []byte("created")})
	check(err)
	_, err = future.Wait(ctx)
	var undelivered *producer.UndeliveredError
	if errors.As(err, &undelivered) {
		fmt.Println(undelivered.Stream, undelivered.PartitionKey, undelivered.Attempts)
	}
	fmt.Println(errors.Is(err, producer.ErrRefusedCaller))
	check(p.Close(ctx))
	// Output:
	// typo order-17 1
	// true
}

// ParseOrder parses the values of the flag --order.
func ExampleParseOrder() {
	order, err := producer.ParseOrder("shard")
	fmt.Println(order, err)
	_, err = producer.ParseOrder("fast")
	fmt.Println(err)
	// Output:
	// shard <nil>
	// not an order: want key, shard, none, plain or chained: "fast"
}
