package interop

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	dynamotypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/runnel-stream/runnel/consumer"
)

// TestMixedFleet runs workers of the Java KCL 2.7.2 and of package consumer on one lease table.
// Either begins the table. Shards split and merge, the Java worker is killed, and the Go worker
// leaves. Every record must be delivered, those of a key in order.
func TestMixedFleet(t *testing.T) {
	if os.Getenv("RUNNEL_INTEROP") == "" {
		t.Skip("make interop installs the KCL and runs this")
	}
	t.Parallel()
	p := serve(t)
	for _, begins := range []string{"Go", "Java"} {
		t.Run(begins+" begins", func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, p, "2.7.2", polling)
			f.app = "mixed-" + begins
			f.stream = aws.String(f.app)
			f.mixedStory(begins == "Go")
		})
	}
}

// goWorker is a worker of package consumer.
type goWorker struct {
	name string
	stop context.CancelFunc
	done chan error
}

func (f *fleet) startGoWorker(name string) *goWorker {
	f.t.Helper()
	w, err := consumer.New(consumer.Config{
		Stream: *f.stream, App: f.app, WorkerID: name, Failover: 3 * time.Second,
		Kinesis: f.client, DynamoDB: f.items,
		Handler: func(_ context.Context, b *consumer.Batch) error {
			for _, r := range b.Records {
				f.read.add(r.PartitionKey, string(r.Data))
			}
			return nil
		},
		Logger: slog.New(slog.NewTextHandler(f.t.Output(), nil)),
	})
	f.must(err)
	ctx, stop := context.WithCancel(f.ctx)
	g := &goWorker{name: name, stop: stop, done: make(chan error, 1)}
	go func() { g.done <- w.Run(ctx) }()
	f.t.Cleanup(func() { f.leave(g) })
	return g
}

// leave stops a Go worker politely. Only the first call does so.
func (f *fleet) leave(g *goWorker) {
	g.stop()
	if err, open := <-g.done; open {
		close(g.done)
		if err != nil {
			f.t.Errorf("worker %s: %v", g.name, err)
		}
	}
}

// owners returns how many unended leases each worker has.
func (f *fleet) owners() map[string]int {
	out, err := f.items.Scan(f.ctx, &dynamodb.ScanInput{
		TableName: &f.app, ConsistentRead: aws.Bool(true),
	})
	f.must(err)
	counts := map[string]int{}
	for _, item := range out.Items {
		checkpoint, _ := item["checkpoint"].(*dynamotypes.AttributeValueMemberS)
		owner, _ := item["leaseOwner"].(*dynamotypes.AttributeValueMemberS)
		if checkpoint != nil && checkpoint.Value != "SHARD_END" && owner != nil {
			counts[owner.Value]++
		}
	}
	return counts
}

// held waits until all of these workers have a lease.
func (f *fleet) held(names ...string) func() (bool, string) {
	return func() (bool, string) {
		owners := f.owners()
		for _, name := range names {
			if owners[name] == 0 {
				return false, fmt.Sprint(owners)
			}
		}
		return true, fmt.Sprint(owners)
	}
}

func (f *fleet) mixedStory(goBegins bool) {
	_, err := f.client.CreateStream(f.ctx, &kinesis.CreateStreamInput{
		StreamName: f.stream, ShardCount: aws.Int32(4),
	})
	f.must(err)
	f.active()
	var ours *goWorker
	var java *worker
	if goBegins {
		ours = f.startGoWorker("go")
	} else {
		java = f.startWorker("java")
	}
	f.putBatch()
	f.until("the first worker has read all", f.readAll)
	if goBegins {
		java = f.startWorker("java")
	} else {
		ours = f.startGoWorker("go")
	}
	f.until("both have a share", f.puttingUntil(f.held("go", "java")))

	shards := f.shards()
	_, err = f.client.SplitShard(f.ctx, &kinesis.SplitShardInput{
		StreamName: f.stream, ShardToSplit: shards[0].ShardId,
		NewStartingHashKey: aws.String("9" + (*shards[0].HashKeyRange.EndingHashKey)[2:]),
	})
	f.must(err)
	f.active()
	f.putBatch()
	f.until("every record has been read after the split", f.readAll)
	java.kill()
	f.putBatch()
	killed := time.Now()
	f.until("every record has been read after the death", f.readAll)
	if took := time.Since(killed); took > 20*time.Second {
		f.t.Errorf("the dead worker's shards were silent for %s", took)
	}
	_, err = f.client.MergeShards(f.ctx, &kinesis.MergeShardsInput{
		StreamName: f.stream, ShardToMerge: shards[2].ShardId,
		AdjacentShardToMerge: shards[3].ShardId,
	})
	f.must(err)
	f.active()
	f.putBatch()
	f.until("every record has been read after the merge", f.readAll)
	f.startWorker("java-2")
	f.until("the second Java worker has a share", f.puttingUntil(f.held("go", "java-2")))
	f.leave(ours)
	f.putBatch()
	f.until("every record has been read after the Go worker left", f.readAll)
	f.until("the leases are as the shards", f.leasesFit)
	for _, fault := range f.read.disorder() {
		f.t.Error(fault)
	}
	f.t.Logf("%d records, %d again", f.read.count(), f.read.repeats())
}
