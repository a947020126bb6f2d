package cli

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/runnel-stream/runnel/internal/endpoint"
	"github.com/runnel-stream/runnel/internal/retry"
	"github.com/runnel-stream/runnel/internal/shardmap"
	"github.com/runnel-stream/runnel/keyspace"
)

// act is something that happens to the pipeline once a share of the records was acknowledged.
type act struct {
	at   float64
	name string
	do   func(context.Context) error
}

// stage plays the acts while records flow, and gives the first error, or nil, when all are
// done.
func (d *demo) stage(ctx context.Context) <-chan error {
	acts := []act{
		{0.15, "a shard is split", d.split},
		{0.25, "the server is killed and started again", d.killServer},
		{0.35, "two shards are merged", d.merge},
		{0.50, "a worker is stopped without a goodbye", d.loseWorker},
		{0.70, "a shard is split", d.split},
	}
	done := make(chan error, 1)
	go func() {
		for _, next := range acts {
			for float64(d.acked.Load()) < next.at*float64(d.total) {
				if err := retry.Wait(ctx, 5*time.Millisecond); err != nil {
					done <- err
					return
				}
			}
			if err := next.do(ctx); err != nil {
				done <- fmt.Errorf("%s: %w", next.name, err)
				return
			}
		}
		done <- nil
	}()
	return done
}

// open returns the open shards in the order of their hash keys.
func (d *demo) open(ctx context.Context) ([]shardmap.Shard, error) {
	if err := endpoint.WaitActive(ctx, d.server.kinesis(), demoStream); err != nil {
		return nil, err
	}
	shards, err := shardmap.List(ctx, d.server.kinesis(), demoStream,
		&types.ShardFilter{Type: types.ShardFilterTypeAtLatest})
	slices.SortFunc(shards, func(a, b shardmap.Shard) int {
		return a.Range.Start.Compare(b.Range.Start)
	})
	return shards, err
}

// split splits the widest open shard in its middle.
func (d *demo) split(ctx context.Context) error {
	shards, err := d.open(ctx)
	if err != nil {
		return err
	}
	widest := slices.MaxFunc(shards, func(a, b shardmap.Shard) int {
		return width(a.Range).Compare(width(b.Range))
	})
	_, err = d.server.kinesis().SplitShard(ctx, &kinesis.SplitShardInput{
		StreamName: aws.String(demoStream), ShardToSplit: aws.String(string(widest.ID)),
		NewStartingHashKey: aws.String(widest.Range.Middle().String()),
	})
	if err == nil {
		d.news("split    %s, in its middle", widest.ID)
	}
	return err
}

func width(r keyspace.Range) keyspace.Key { return r.End.Sub(r.Start) }

// merge merges the two neighbours that are narrowest together.
func (d *demo) merge(ctx context.Context) error {
	shards, err := d.open(ctx)
	if err != nil || len(shards) < 2 {
		return err
	}
	joint := func(i int) keyspace.Key { return width(shards[i].Range.Join(shards[i+1].Range)) }
	at := 0
	for i := range len(shards) - 1 {
		if joint(i).Less(joint(at)) {
			at = i
		}
	}
	_, err = d.server.kinesis().MergeShards(ctx, &kinesis.MergeShardsInput{
		StreamName: aws.String(demoStream), ShardToMerge: aws.String(string(shards[at].ID)),
		AdjacentShardToMerge: aws.String(string(shards[at+1].ID)),
	})
	if err == nil {
		d.news("merged   %s and %s", shards[at].ID, shards[at+1].ID)
	}
	return err
}

// killServer ends the server with -9 in the middle of all that goes on, and starts it again.
func (d *demo) killServer(ctx context.Context) error {
	took, err := d.server.restart(ctx, func() { d.news("killed   the server (-9)") })
	if err == nil {
		d.news("started  it again on its data: %d ms", took.Milliseconds())
	}
	return err
}

func (d *demo) loseWorker(context.Context) error {
	name, shards := d.fleet.lose()
	d.news("stopped  %s without a goodbye; it held %s", name, shards)
	return nil
}
