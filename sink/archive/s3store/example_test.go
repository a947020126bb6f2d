package s3store_test

import (
	"context"
	"log"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/runnel-stream/runnel/sink/archive"
	"github.com/runnel-stream/runnel/sink/archive/s3store"
)

// An archive in a bucket. Probe finds out whether the bucket serves before the first record.
func Example() {
	ctx := context.Background()
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		log.Fatal(err)
	}
	store, err := s3store.New(s3store.Config{
		S3: s3.NewFromConfig(cfg), Bucket: "my-events", Prefix: "archive",
	})
	if err != nil {
		log.Fatal(err)
	}
	sink, err := archive.New(archive.Config{Store: store})
	if err != nil {
		log.Fatal(err)
	}
	if err := sink.Probe(ctx); err != nil {
		log.Fatal(err)
	}
	// sink is now the Sink of a consumer.Config.
}
