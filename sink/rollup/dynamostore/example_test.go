package dynamostore_test

import (
	"context"
	"log"
	"time"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/runnel-stream/runnel/consumer"
	"github.com/runnel-stream/runnel/sink/rollup"
	"github.com/runnel-stream/runnel/sink/rollup/dynamostore"
)

// A fleet counts the edits of each channel and minute in a DynamoDB table. Each edit counts once.
func Example() {
	ctx := context.Background()
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		log.Fatal(err)
	}
	streams, tables := kinesis.NewFromConfig(cfg), dynamodb.NewFromConfig(cfg)
	store, err := dynamostore.New(dynamostore.Config{DynamoDB: tables, Table: "edits"})
	if err != nil {
		log.Fatal(err)
	}
	rows, err := rollup.OpenRows(ctx, rollup.RowsConfig{
		Definition: rollup.Definition{
			Keys:    []rollup.Field{{Pointer: "/channel"}},
			Bucket:  time.Minute,
			Columns: []rollup.Column{{Op: rollup.Count}},
		},
		Store: store, Kinesis: streams, App: "edits-per-minute", Stream: "edits",
	})
	if err != nil {
		log.Fatal(err)
	}
	worker, err := consumer.New(consumer.Config{
		Stream: "edits", App: "edits-per-minute", Kinesis: streams, DynamoDB: tables,
		Handler: rows.Handle, Output: rows.Output(),
	})
	if err != nil {
		log.Fatal(err)
	}
	if err := worker.Run(ctx); err != nil {
		log.Print(err)
	}
}
