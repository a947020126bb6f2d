package keytable

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/aggregate"
	"github.com/runnel-stream/runnel/internal/awserr"
	"github.com/runnel-stream/runnel/internal/streamref"
)

// mark puts an empty aggregate under each key, at most 90, and returns the last mark of each shard.
// Every earlier record of a key lies before its mark: in the same shard, or in an ancestor of it. A
// mark without an answer is put again.
func (p *passage) mark(
	ctx context.Context, keys []string,
) (map[runnel.ShardID]runnel.SequenceNumber, error) {
	marks := map[runnel.ShardID]runnel.SequenceNumber{}
	for attempt := 1; ; attempt++ {
		failed, err := p.putMarks(ctx, keys, marks)
		switch {
		case err == nil && len(failed) == 0:
			return marks, nil
		case err != nil && (ctx.Err() != nil || !awserr.Kinesis.Transient(err)):
			return nil, fmt.Errorf("mark the shards of stream %s: %w", p.move.Stream, err)
		}
		keys = failed
		if err := backoff.Wait(ctx, attempt); err != nil {
			return nil, fmt.Errorf("mark the shards of stream %s: %w", p.move.Stream, err)
		}
	}
}

// putMarks puts a mark under each key, and returns the keys without a mark.
func (p *passage) putMarks(
	ctx context.Context, keys []string, marks map[runnel.ShardID]runnel.SequenceNumber,
) (failed []string, err error) {
	in := &kinesis.PutRecordsInput{}
	in.StreamName, in.StreamARN = streamref.Target(p.move.Stream)
	for _, key := range keys {
		in.Records = append(in.Records, types.PutRecordsRequestEntry{
			PartitionKey:    aws.String(aggregate.OuterPartitionKey),
			ExplicitHashKey: aws.String(key), Data: aggregate.Empty(),
		})
	}
	ctx, cancel := p.table.call(ctx)
	defer cancel()
	out, err := p.move.Kinesis.PutRecords(ctx, in)
	if err != nil {
		return keys, err
	}
	if len(out.Records) != len(keys) {
		return keys, fmt.Errorf("%d records were put and %d answered", len(keys), len(out.Records))
	}
	for i, r := range out.Records {
		if r.SequenceNumber == nil {
			failed = append(failed, keys[i])
			continue
		}
		shard := runnel.ShardID(aws.ToString(r.ShardId))
		if n := runnel.SequenceNumber(*r.SequenceNumber); marks[shard].Compare(n) < 0 {
			marks[shard] = n
		}
	}
	return failed, nil
}
