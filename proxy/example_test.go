package proxy_test

import (
	"context"
	"fmt"
	"log"
	"net/http/httptest"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/runnel-stream/runnel/proxy"
	"github.com/runnel-stream/runnel/runneltest"
)

// A client in any language puts through the proxy, which keeps the order of each key.
func Example() {
	ctx := context.Background()
	server, err := runneltest.Start(ctx, runneltest.WithStream("orders", 4))
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	p, err := proxy.New(ctx, proxy.Config{Kinesis: server.Kinesis()})
	if err != nil {
		log.Fatal(err)
	}
	front := httptest.NewServer(p.Handler())
	defer front.Close()

	client := kinesis.NewFromConfig(server.AWSConfig(), func(o *kinesis.Options) {
		o.BaseEndpoint = aws.String(front.URL)
	})
	answer, err := client.PutRecord(ctx, &kinesis.PutRecordInput{
		StreamName: aws.String("orders"), PartitionKey: aws.String("order-17"),
		Data: []byte("created"),
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(*answer.ShardId, p.Close(ctx))
	// Output: shardId-000000000000 <nil>
}
