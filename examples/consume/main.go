// Command consume prints the events of a stream, in order per key. Start as many as you like:
// they share the stream's shards.
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

	"github.com/runnel-stream/runnel/consumer"
)

func main() {
	once := flag.Bool("once", false, "end after the last record")
	flag.Parse()
	// README.md begins here.
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
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
