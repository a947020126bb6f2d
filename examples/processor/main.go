// Command processor appends the events of each shard to a file of its own, and checkpoints only
// what the disk has: after 1,000 events, when none comes for a second, and at the end.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"path/filepath"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/consumer"
)

func main() {
	once := flag.Bool("once", false, "end after the last record")
	dir := flag.String("dir", ".", "the files' folder")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	aws, err := config.LoadDefaultConfig(ctx)
	check(err)
	worker, err := consumer.New(consumer.Config{
		Stream: "orders", App: "orders-files", Once: *once,
		Kinesis: kinesis.NewFromConfig(aws), DynamoDB: dynamodb.NewFromConfig(aws),
		NewProcessor: func(_ context.Context, s consumer.Shard) (consumer.Processor, error) {
			file, err := os.OpenFile(filepath.Join(*dir, string(s.ID)),
				os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
			return &shard{file: file}, err
		},
	})
	check(err)
	check(worker.Run(ctx))
}

// shard is the Processor of one shard.
type shard struct {
	file    *os.File
	unsaved int // events behind the last checkpoint
	last    runnel.Position
}

func (s *shard) Process(
	ctx context.Context, b *consumer.Batch, c *consumer.Checkpointer,
) error {
	for _, r := range b.Records {
		if _, err := fmt.Fprintf(s.file, "%s %s\n", r.PartitionKey, r.Data); err != nil {
			return consumer.Unavailable(err) // the disk is full: no event is to blame
		}
		s.unsaved, s.last = s.unsaved+1, r.Position
	}
	if len(b.Records) == 0 || s.unsaved >= 1000 {
		return s.save(ctx, c)
	}
	return nil
}

func (s *shard) Stop(
	ctx context.Context, why consumer.StopReason, c *consumer.Checkpointer,
) error {
	if why != consumer.StopLost && why != consumer.StopSought {
		if err := s.save(ctx, c); err != nil {
			return err
		}
	}
	return s.file.Close()
}

// save checkpoints the events that the disk has.
func (s *shard) save(ctx context.Context, c *consumer.Checkpointer) error {
	if s.unsaved == 0 {
		return nil
	}
	if err := s.file.Sync(); err != nil {
		return err
	}
	if err := c.Checkpoint(ctx, s.last); err != nil {
		return err
	}
	s.unsaved = 0
	return nil
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
