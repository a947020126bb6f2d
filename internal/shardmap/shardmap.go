// Package shardmap lists the shards of a stream, with their parents and ranges and whether they are
// open. Its Map keeps the list fresh for several users in a process.
package shardmap

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/awserr"
	"github.com/runnel-stream/runnel/internal/retry"
	"github.com/runnel-stream/runnel/internal/streamref"
	"github.com/runnel-stream/runnel/keyspace"
)

// KinesisAPI is the part of the AWS SDK's Kinesis client that this package uses.
type KinesisAPI interface {
	ListShards(context.Context, *kinesis.ListShardsInput, ...func(*kinesis.Options)) (
		*kinesis.ListShardsOutput, error)
}

// ErrShard is returned for a list that makes no sense.
var ErrShard = errors.New("the stream's list of shards cannot be read")

const (
	pageSize    = 1000             // ListShards' default; most streams fit in
	attempts    = 6                // of one page; with the waits between them some 10 s
	callTimeout = 10 * time.Second // of one call
	maxWait     = 3 * time.Second
)

var backoff = retry.Backoff{Min: 100 * time.Millisecond, Max: maxWait}

// List returns the stream's shards in the order of ListShards, from all pages: all shards that the
// stream still lists, or those that filter selects (nil: no filter). stream is its name or ARN. It
// retries throttling and outages for some seconds, until ctx is done.
func List(
	ctx context.Context, api KinesisAPI, stream string, filter *types.ShardFilter,
) ([]runnel.Shard, error) {
	in := &kinesis.ListShardsInput{ShardFilter: filter, MaxResults: aws.Int32(pageSize)}
	in.StreamName, in.StreamARN = streamref.Target(stream)
	var shards []runnel.Shard
	for {
		out, err := page(ctx, api, in)
		if err != nil {
			return nil, fmt.Errorf("list the shards of stream %s: %w", stream, err)
		}
		for _, s := range out.Shards {
			shard, err := read(s)
			if err != nil {
				return nil, fmt.Errorf("list the shards of stream %s: %w", stream, err)
			}
			shards = append(shards, shard)
		}
		if aws.ToString(out.NextToken) == "" {
			return shards, nil
		}
		in = &kinesis.ListShardsInput{NextToken: out.NextToken, MaxResults: in.MaxResults}
	}
}

func page(
	ctx context.Context, api KinesisAPI, in *kinesis.ListShardsInput,
) (*kinesis.ListShardsOutput, error) {
	for attempt := 1; ; attempt++ {
		out, err := call(ctx, api, in)
		if err == nil || ctx.Err() != nil || attempt == attempts || !awserr.Kinesis.Transient(err) {
			return out, err
		}
		if err := backoff.Wait(ctx, attempt); err != nil {
			return nil, err
		}
	}
}

func call(
	ctx context.Context, api KinesisAPI, in *kinesis.ListShardsInput,
) (*kinesis.ListShardsOutput, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return api.ListShards(ctx, in)
}

func read(s types.Shard) (runnel.Shard, error) {
	shard := runnel.Shard{ID: runnel.ShardID(aws.ToString(s.ShardId))}
	fault := func(what string, err error) (runnel.Shard, error) {
		return runnel.Shard{}, fmt.Errorf("%w: shard %q: %s: %w", ErrShard, shard.ID, what, err)
	}
	var err error
	if shard.Range, err = hashRange(s.HashKeyRange); err != nil {
		return fault("hash key range", err)
	}
	for _, parent := range []*string{s.ParentShardId, s.AdjacentParentShardId} {
		if id := runnel.ShardID(aws.ToString(parent)); id != "" {
			shard.Parents = append(shard.Parents, id)
		}
	}
	if s.SequenceNumberRange != nil {
		first := aws.ToString(s.SequenceNumberRange.StartingSequenceNumber)
		shard.First = runnel.SequenceNumber(first)
		shard.Last = runnel.SequenceNumber(aws.ToString(s.SequenceNumberRange.EndingSequenceNumber))
	}
	return shard, nil
}

func hashRange(r *types.HashKeyRange) (keyspace.Range, error) {
	if r == nil {
		return keyspace.Range{}, errors.New("is missing")
	}
	start, err := keyspace.Parse(aws.ToString(r.StartingHashKey))
	if err != nil {
		return keyspace.Range{}, err
	}
	end, err := keyspace.Parse(aws.ToString(r.EndingHashKey))
	return keyspace.Range{Start: start, End: end}, err
}

// Children reads the ChildShards that GetRecords returns at a shard's end.
func Children(list []types.ChildShard) ([]runnel.Shard, error) {
	children := make([]runnel.Shard, len(list))
	for i, c := range list {
		r, err := hashRange(c.HashKeyRange)
		if err != nil {
			return nil, fmt.Errorf("%w: child shard %q: %w", ErrShard, aws.ToString(c.ShardId), err)
		}
		children[i] = runnel.Shard{ID: runnel.ShardID(aws.ToString(c.ShardId)), Range: r}
		for _, parent := range c.ParentShards {
			children[i].Parents = append(children[i].Parents, runnel.ShardID(parent))
		}
	}
	return children, nil
}

// ChildrenOf returns the children of the given shard.
func ChildrenOf(shards []runnel.Shard, parent runnel.ShardID) []runnel.Shard {
	var children []runnel.Shard
	for _, s := range shards {
		if slices.Contains(s.Parents, parent) {
			children = append(children, s)
		}
	}
	return children
}
