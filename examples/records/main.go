// Command records handles the events of a stream one by one, 50 keys of a shard at a time, each
// key's events in order. An event that fails five times goes to standard error, and the others go
// on.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/consumer"
)

func main() {
	once := flag.Bool("once", false, "end after the last record")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	aws, err := config.LoadDefaultConfig(ctx)
	check(err)
	worker, err := consumer.New(consumer.Config{
		Stream: "orders", App: "orders-mailer", Once: *once,
		Kinesis: kinesis.NewFromConfig(aws), DynamoDB: dynamodb.NewFromConfig(aws),
		Record: send, Parallel: 50,
		OnError: consumer.ErrorPolicy{
			Attempts: 5, Then: consumer.ThenSkip, DeadLetter: keep,
		},
	})
	check(err)
	check(worker.Run(ctx))
}

// send stands for a call that takes a while, such as one that sends a mail.
func send(_ context.Context, r *runnel.Record) error {
	if string(r.Data) == "" {
		return fmt.Errorf("the event of %s is empty", r.PartitionKey)
	}
	fmt.Printf("%s %s\n", r.PartitionKey, r.Data)
	return nil
}

func keep(_ context.Context, f consumer.Failure) error {
	_, err := fmt.Fprintf(os.Stderr, "given up at %s: %v\n", f.Records[0].Position, f.Err)
	return err
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
