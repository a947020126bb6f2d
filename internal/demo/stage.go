package demo

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/endpoint"
	"github.com/runnel-stream/runnel/internal/retry"
	"github.com/runnel-stream/runnel/internal/shardmap"
	"github.com/runnel-stream/runnel/keyspace"
)

// act is a change of the pipeline after a share of the records was acknowledged.
type act struct {
	at   float64
	name string
	do   func(context.Context) error
}

// stage changes the pipeline while records flow: shards, the server, a worker.
type stage struct {
	server *server
	fleet  *fleet
	news   func(format string, args ...any)
}

// run starts the acts. progress returns the fraction of the records that were acknowledged. The
// channel delivers the first error, or nil after the last act.
func (s *stage) run(ctx context.Context, progress func() float64) <-chan error {
	acts := []act{
		{0.15, "a shard is split", s.split},
		{0.25, "the server is killed and started again", s.killServer},
		{0.35, "two shards are merged", s.merge},
		{0.50, "a worker is stopped without a goodbye", s.loseWorker},
		{0.70, "a shard is split", s.split},
	}
	done := make(chan error, 1)
	go func() {
		for _, next := range acts {
			for progress() < next.at {
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
func (s *stage) open(ctx context.Context) ([]runnel.Shard, error) {
	if err := endpoint.WaitActive(ctx, s.server.kinesis(), stream); err != nil {
		return nil, err
	}
	shards, err := shardmap.List(ctx, s.server.kinesis(), stream,
		&types.ShardFilter{Type: types.ShardFilterTypeAtLatest})
	slices.SortFunc(shards, func(a, b runnel.Shard) int {
		return a.Range.Start.Compare(b.Range.Start)
	})
	return shards, err
}

// split splits the widest open shard in its middle.
func (s *stage) split(ctx context.Context) error {
	shards, err := s.open(ctx)
	if err != nil {
		return err
	}
	widest := slices.MaxFunc(shards, func(a, b runnel.Shard) int {
		return width(a.Range).Compare(width(b.Range))
	})
	_, err = s.server.kinesis().SplitShard(ctx, &kinesis.SplitShardInput{
		StreamName: aws.String(stream), ShardToSplit: aws.String(string(widest.ID)),
		NewStartingHashKey: aws.String(widest.Range.Middle().String()),
	})
	if err == nil {
		s.news("split    %s, in its middle", widest.ID)
	}
	return err
}

func width(r keyspace.Range) keyspace.Key { return r.End.Sub(r.Start) }

// merge merges the two neighbours that are narrowest together.
func (s *stage) merge(ctx context.Context) error {
	shards, err := s.open(ctx)
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
	_, err = s.server.kinesis().MergeShards(ctx, &kinesis.MergeShardsInput{
		StreamName: aws.String(stream), ShardToMerge: aws.String(string(shards[at].ID)),
		AdjacentShardToMerge: aws.String(string(shards[at+1].ID)),
	})
	if err == nil {
		s.news("merged   %s and %s", shards[at].ID, shards[at+1].ID)
	}
	return err
}

// killServer ends the server with -9 under load, and starts it again.
func (s *stage) killServer(ctx context.Context) error {
	took, err := s.server.restart(ctx, func() { s.news("killed   the server (-9)") })
	if err == nil {
		s.news("started  it again on its data: %d ms", took.Milliseconds())
	}
	return err
}

// loseWait is how long the loss waits for a worker with a shard. A slow machine puts all records
// before the fleet has its first leases.
const loseWait = 10 * time.Second

func (s *stage) loseWorker(ctx context.Context) error {
	for end := time.Now().Add(loseWait); !s.fleet.busy() && time.Now().Before(end); {
		if err := retry.Wait(ctx, 5*time.Millisecond); err != nil {
			return err
		}
	}
	name, shards := s.fleet.lose()
	s.news("stopped  %s without a goodbye; it held %s", name, shards)
	return nil
}
