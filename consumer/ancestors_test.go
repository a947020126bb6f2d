package consumer

import (
	"context"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/shardmap"
	"github.com/runnel-stream/runnel/lease"
	"github.com/runnel-stream/runnel/lease/leasetest"
)

// lineage lists shard "a", its child "b", and that one's child "c".
type lineage struct{}

func (lineage) ListShards(
	context.Context, *kinesis.ListShardsInput, ...func(*kinesis.Options),
) (*kinesis.ListShardsOutput, error) {
	out := &kinesis.ListShardsOutput{}
	for _, s := range [][2]string{{"a", ""}, {"b", "a"}, {"c", "b"}} {
		d := types.Shard{ShardId: aws.String(s[0]), HashKeyRange: &types.HashKeyRange{
			StartingHashKey: aws.String("0"), EndingHashKey: aws.String("9"),
		}}
		if s[1] != "" {
			d.ParentShardId = aws.String(s[1])
		}
		out.Shards = append(out.Shards, d)
	}
	return out, nil
}

// A parent without a lease has ended if no worker is going to make one. The question must be asked
// again if the answer changes in the meantime.
func TestAllEnded(t *testing.T) {
	ctx := t.Context()
	memory := &leasetest.Memory{}
	table, err := lease.New(lease.Config{
		DynamoDB: memory, Table: "app", Stream: lease.Stream{Name: "s", Created: time.UnixMilli(1)},
	})
	if err == nil {
		err = table.Ensure(ctx)
	}
	if err != nil {
		t.Fatal(err)
	}
	r := &run{table: table, shards: shardmap.New(lineage{}, "s")}
	create := func(id runnel.ShardID) lease.Lease {
		l, _, err := table.Create(ctx, lease.Lease{
			Key: id, Owner: "w", Checkpoint: runnel.Position{Sequence: runnel.TrimHorizon},
		})
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	finish := func(l lease.Lease) {
		if _, err := table.Finish(ctx, l, lease.Mark{}, nil); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(want bool, when string) {
		t.Helper()
		if got, err := r.allEnded(ctx, []runnel.ShardID{"b"}); err != nil || got != want {
			t.Errorf("%s: %v, %v", when, got, err)
		}
	}
	expect(true, "no leases at all")
	a := create("a")
	expect(false, "its own parent is being read")
	var b lease.Lease
	memory.Before = func(_ context.Context, op, key string) error {
		if op == "GetItem" && key == "a" { // after the first look for b
			memory.Before = nil
			b = create("b")
			finish(a)
		}
		return nil
	}
	expect(false, "it was created, and its parent ended, in the middle of the question")
	finish(b)
	expect(true, "it has ended")
	if err := table.Delete(ctx, lease.Lease{Key: "b", Counter: 1}); err != nil {
		t.Fatal(err)
	}
	expect(true, "it was cleaned away")
}
