package consumer_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/runnel-stream/runnel/consumer"
	"github.com/runnel-stream/runnel/runneltest"
	"github.com/runnel-stream/runnel/sink/archive"
)

// silenced makes reads wait until it is released.
type silenced struct {
	consumer.KinesisAPI
	loopback
	until atomic.Pointer[chan struct{}]
}

func (s *silenced) GetRecords(
	ctx context.Context, in *kinesis.GetRecordsInput, o ...func(*kinesis.Options),
) (*kinesis.GetRecordsOutput, error) {
	if until := s.until.Load(); until != nil {
		<-*until
	}
	return s.KinesisAPI.GetRecords(ctx, in, o...)
}

// putUnits stores the units [lo, hi) of one producer.
func (r *retained) putUnits(lo, hi uint64) {
	r.Helper()
	for n := lo; n < hi; n++ {
		if _, err := r.server.Kinesis().PutRecord(r.Context(), &kinesis.PutRecordInput{
			StreamName: aws.String("orders"), PartitionKey: aws.String("k"),
			Data: []byte(unit(1, n, fmt.Sprint("key ", n), "unit")),
		}); err != nil {
			r.Fatal(err)
		}
		<-time.After(time.Millisecond)
	}
}

// If records wait for their commit when a gap comes, they are committed with the state from before
// the gap. A reader that goes on there reads the records behind it, and the archive is whole.
func TestGapBehindRecordsThatWait(t *testing.T) {
	onRetained(t, func(r *retained) {
		api := &silenced{KinesisAPI: r.api}
		r.api = api
		done := make(chan error, 1)
		go func() {
			done <- r.run(26*time.Hour, seldom, func(c *consumer.Config) {
				target, err := archive.New(archive.Config{Dir: r.dir, Every: 100 * time.Hour})
				if err != nil {
					t.Error(err)
				}
				c.Sink, c.CallTimeout = target, 30*time.Hour
			})
		}()
		<-time.After(time.Minute)
		r.putUnits(1, 4)
		<-time.After(10 * time.Minute)
		silence := make(chan struct{})
		api.until.Store(&silence)
		r.putUnits(4, 7)
		<-time.After(25 * time.Hour)
		r.putUnits(7, 10)
		close(silence)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		r.wantGaps(1, 6)
		r.putUnits(9, 12) // the first one is a double
		r.mustRun(0, r.archiving)
		r.wantGaps(1, 8)
	})
}

// A shard that began and ended while no worker read leaves gaps where its children begin.
func TestGapOfAShardThatCameAndWent(t *testing.T) {
	onRetained(t, func(r *retained) {
		r.put(10)
		r.mustRun(0, r.archiving)
		split(r.T, r.server, "shardId-000000000000")
		r.put(10)
		<-time.After(time.Minute)
		for _, s := range []struct{ id, at string }{
			{"shardId-000000000001", "85070591730234615865843651857942052864"},
			{"shardId-000000000002", "255211775190703847597530955573826158592"},
		} {
			splitAt(r.T, r.server, s.id, s.at)
		}
		r.put(10)
		<-time.After(26 * time.Hour)
		r.put(7)
		r.mustRun(0, r.archiving)
		report, err := archive.Verify(r.Context(), r.dir, archive.VerifyOptions{AllowGaps: true})
		if err != nil || !report.OK() || report.Records != 17 {
			r.Errorf("%+v, %v", report, err)
		}
		if gaps := r.gaps(); len(gaps) != 5 {
			r.Errorf("gaps: %q, want the first shard's and those of the four children", gaps)
		}
	})
}

func splitAt(t *testing.T, server *runneltest.Server, shard, at string) {
	t.Helper()
	if _, err := server.Kinesis().SplitShard(t.Context(), &kinesis.SplitShardInput{
		StreamName: aws.String("orders"), ShardToSplit: aws.String(shard),
		NewStartingHashKey: aws.String(at),
	}); err != nil {
		t.Fatal(err)
	}
}
