package keys_test

import (
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/runnel-stream/runnel/internal/cli/clitest"
	"github.com/runnel-stream/runnel/keyspace"
	"github.com/runnel-stream/runnel/runneltest"
)

// After a split, `keys hash --stream` names the children, each for its part, and no longer the
// shard that was split.
func TestKeysHashAfterSplit(t *testing.T) {
	server := runneltest.NewServer(t, runneltest.WithStream("orders", 2))
	client := kinesis.NewFromConfig(server.AWSConfig())
	stream, shard := "orders", "shardId-000000000000"
	at := keyspace.Of("6").String() // in the first half: the first key of the right child
	_, err := client.SplitShard(t.Context(), &kinesis.SplitShardInput{
		StreamName: &stream, ShardToSplit: &shard, NewStartingHashKey: &at,
	})
	if err != nil {
		t.Fatal(err)
	}
	waiter := kinesis.NewStreamExistsWaiter(client, func(o *kinesis.StreamExistsWaiterOptions) {
		o.MinDelay, o.MaxDelay = 10*time.Millisecond, 100*time.Millisecond
	})
	err = waiter.Wait(t.Context(), &kinesis.DescribeStreamInput{StreamName: &stream}, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	// 27 hashes into the first half too, below 6.
	status, out, errs := clitest.Run(t.Context(), "keys", "hash", "--stream", stream,
		"--endpoint", server.Endpoint(), "27", "6", "1")
	var shards []string
	for line := range strings.Lines(out) {
		shards = append(shards, strings.Split(line, "\t")[1])
	}
	const want = "shardId-000000000002 shardId-000000000003 shardId-000000000001"
	if got := strings.Join(shards, " "); status != 0 || got != want {
		t.Errorf("status %d, %s; want %s\n%s%s", status, got, want, out, errs)
	}
}
