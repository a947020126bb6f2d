package runneltest_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/runnel-stream/runnel/runneltest"
)

// A server with limits throttles a client without retries, and accepts its calls again in the
// next second. The limits can be changed while the server runs, and survive a restart.
func TestLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := runneltest.NewServer(t, runneltest.InMemory(), runneltest.WithStream(stream, 1),
			runneltest.WithLimits("write-records=2"))
		client := kinesis.NewFromConfig(server.AWSConfig(), func(o *kinesis.Options) {
			o.Retryer = aws.NopRetryer{}
		})
		want := func(step string, throttled bool) {
			t.Helper()
			err := put(t.Context(), client, "k", step)
			var exceeded *types.ProvisionedThroughputExceededException
			if errors.As(err, &exceeded) != throttled || (!throttled && err != nil) {
				t.Fatalf("%s: %v", step, err)
			}
			if throttled && !strings.HasPrefix(exceeded.ErrorMessage(),
				"Rate exceeded for shard shardId-000000000000 in stream orders under account") {
				t.Fatalf("%s: %v", step, err)
			}
		}
		want("first", false)
		want("second", false)
		want("third", true)
		time.Sleep(time.Second)
		want("after a second", false)
		if err := server.SetLimits("write-records=1"); err != nil {
			t.Fatal(err)
		}
		want("counted anew", false)
		want("one a second", true)
		if err := server.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // until the client has noticed that its connection was cut
		want("restarted", false)
		want("one a second after a restart", true)
		if err := server.SetLimits("off"); err != nil {
			t.Fatal(err)
		}
		for range 20 {
			want("without limits", false)
		}
		if err := server.SetLimits("write-records=fast"); err == nil {
			t.Error("a bad specification is taken")
		}
	})
	if _, err := runneltest.Start(t.Context(), runneltest.WithLimits("x")); err == nil {
		t.Error("a bad specification is taken")
	}
}
