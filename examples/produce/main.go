// Command produce puts three events of one order, in order.
package main

import (
	"context"
	"log"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/producer"
)

func main() {
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
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
