package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/consumer"
	"github.com/runnel-stream/runnel/runneltest"
)

// orders returns the configuration of a worker that reads the three events of serveOrders.
func orders(server *runneltest.Server) consumer.Config {
	return consumer.Config{
		Stream: "orders", App: "orders-app", Once: true,
		Kinesis: server.Kinesis(), DynamoDB: server.DynamoDB(),
	}
}

func run(cfg consumer.Config) {
	worker, err := consumer.New(cfg)
	check(err)
	check(worker.Run(context.Background()))
}

// Handle one record at a time, and 50 keys of each shard at once. The events of an order stay in
// order.
func ExampleConfig_record() {
	server, end := serveOrders()
	defer end()
	cfg := orders(server)
	cfg.Parallel = 50
	cfg.Record = func(_ context.Context, r *runnel.Record) error {
		fmt.Printf("%s %s\n", r.PartitionKey, r.Data)
		return nil
	}
	run(cfg)
	// Output:
	// order-17 created
	// order-17 paid
	// order-17 shipped
}

// counter counts the events of a shard.
type counter struct {
	shard runnel.ShardID
	n     int
	last  runnel.Position
}

func (t *counter) Process(_ context.Context, b *consumer.Batch, _ *consumer.Checkpointer) error {
	for _, r := range b.Records {
		t.n, t.last = t.n+1, r.Position
	}
	return nil
}

func (t *counter) Stop(
	ctx context.Context, why consumer.StopReason, c *consumer.Checkpointer,
) error {
	if t.n == 0 || why == consumer.StopLost || why == consumer.StopSought {
		return nil
	}
	fmt.Println(t.n, "events,", why)
	return c.Checkpoint(ctx, t.last)
}

// A Processor lives as long as this worker reads its shard, and makes the checkpoints itself: this
// one when it is stopped.
func ExampleProcessor() {
	server, end := serveOrders()
	defer end()
	cfg := orders(server)
	cfg.NewProcessor = func(_ context.Context, s consumer.Shard) (consumer.Processor, error) {
		return &counter{shard: s.ID}, nil
	}
	run(cfg)
	run(cfg) // finds no event behind the checkpoint
	// Output: 3 events, stopped
}

// refused tries a checkpoint that is not behind the last one.
type refused struct{ counter }

func (r *refused) Process(
	ctx context.Context, b *consumer.Batch, c *consumer.Checkpointer,
) error {
	for i := len(b.Records) - 1; i >= 0; i-- {
		err := c.Checkpoint(ctx, b.Records[i].Position)
		fmt.Printf("%s refused: %v\n", b.Records[i].Data,
			errors.Is(err, consumer.ErrCheckpointRefused))
	}
	return nil
}

// Checkpoints go forward.
func ExampleCheckpointer_Checkpoint() {
	server, end := serveOrders()
	defer end()
	cfg := orders(server)
	cfg.NewProcessor = func(context.Context, consumer.Shard) (consumer.Processor, error) {
		return &refused{}, nil
	}
	run(cfg)
	// Output:
	// shipped refused: false
	// paid refused: true
	// created refused: true
}

// An event that fails three times goes elsewhere, and the others go on.
func ExampleErrorPolicy() {
	server, end := serveOrders()
	defer end()
	cfg := orders(server)
	cfg.Record = func(_ context.Context, r *runnel.Record) error {
		if string(r.Data) == "paid" {
			return errors.New("no such account")
		}
		fmt.Printf("%s\n", r.Data)
		return nil
	}
	cfg.OnError = consumer.ErrorPolicy{
		Attempts: 3, Then: consumer.ThenSkip,
		DeadLetter: func(_ context.Context, f consumer.Failure) error {
			fmt.Printf("%s failed %d times: %v\n", f.Records[0].Data, f.Attempts, f.Err)
			return nil
		},
	}
	run(cfg)
	// Output:
	// created
	// paid failed 3 times: no such account
	// shipped
}

// A handler of batches names the event that failed. The ones before it do not come again.
func ExampleFailedAt() {
	server, end := serveOrders()
	defer end()
	failed := false
	cfg := orders(server)
	cfg.Handler = func(_ context.Context, b *consumer.Batch) error {
		for i := range b.Records {
			r := &b.Records[i]
			if string(r.Data) == "shipped" && !failed {
				failed = true
				return consumer.FailedAt(r, errors.New("the printer is out of paper"))
			}
			fmt.Printf("%s\n", r.Data)
		}
		return nil
	}
	run(cfg)
	// Output:
	// created
	// paid
	// shipped
}

// A database that is away is no fault of an event: the attempts do not count.
func ExampleUnavailable() {
	server, end := serveOrders()
	defer end()
	away := 3
	cfg := orders(server)
	cfg.OnError = consumer.ErrorPolicy{Attempts: 1, Then: consumer.ThenSkip}
	cfg.Record = func(_ context.Context, r *runnel.Record) error {
		if away--; away >= 0 {
			return consumer.Unavailable(errors.New("the database is away"))
		}
		fmt.Printf("%s\n", r.Data)
		return nil
	}
	run(cfg)
	// Output:
	// created
	// paid
	// shipped
}

// Pause a shard from its handler, and resume it later.
func ExampleWorker_Pause() {
	server, end := serveOrders()
	defer end()
	var worker *consumer.Worker
	cfg := orders(server)
	cfg.Record = func(_ context.Context, r *runnel.Record) error {
		fmt.Printf("%s\n", r.Data)
		if string(r.Data) == "paid" {
			worker.Pause(r.ShardID)
			time.AfterFunc(100*time.Millisecond, func() {
				fmt.Println("resumed")
				worker.Resume(r.ShardID)
			})
		}
		return nil
	}
	worker, err := consumer.New(cfg)
	check(err)
	check(worker.Run(context.Background()))
	// Output:
	// created
	// paid
	// resumed
	// shipped
}

// Go back to the beginning of a shard, once. Another worker's shard cannot be sought.
func ExampleWorker_Seek() {
	server, end := serveOrders()
	defer end()
	var worker *consumer.Worker
	sought := false
	cfg := orders(server)
	cfg.Record = func(ctx context.Context, r *runnel.Record) error {
		fmt.Printf("%s\n", r.Data)
		if string(r.Data) == "paid" && !sought {
			sought = true
			err := worker.Seek(ctx, "shardId-000000000017", runnel.Start())
			fmt.Println("not held:", errors.Is(err, consumer.ErrNotHeld))
			return worker.Seek(ctx, r.ShardID, runnel.Start())
		}
		return nil
	}
	worker, err := consumer.New(cfg)
	check(err)
	check(worker.Run(context.Background()))
	// Output:
	// created
	// paid
	// not held: true
	// created
	// paid
	// shipped
}

// A worker that is alone keeps its shards.
func ExampleWorker_Release() {
	server, end := serveOrders()
	defer end()
	var worker *consumer.Worker
	cfg := orders(server)
	cfg.Record = func(ctx context.Context, r *runnel.Record) error {
		if string(r.Data) == "paid" {
			err := worker.Release(ctx, r.ShardID)
			fmt.Println("no other worker:", errors.Is(err, consumer.ErrNoRoom))
		}
		return nil
	}
	worker, err := consumer.New(cfg)
	check(err)
	check(worker.Run(context.Background()))
	// Output: no other worker: true
}
