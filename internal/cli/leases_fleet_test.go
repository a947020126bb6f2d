package cli

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/runnel-stream/runnel/consumer"
	"github.com/runnel-stream/runnel/internal/retry"
	"github.com/runnel-stream/runnel/keyspace"
	"github.com/runnel-stream/runnel/lease"
	"github.com/runnel-stream/runnel/runneltest"
)

// slowFleet is a fleet on a real server in virtual time. Each worker processes so many bytes a
// second, whatever the number of its shards.
type slowFleet struct {
	*testing.T
	server  *runneltest.Server
	rate    int
	workers []*consumer.Worker
	ended   chan error
}

func (f *slowFleet) start(ctx context.Context) {
	f.Helper()
	turn := make(chan struct{}, 1)
	w, err := consumer.New(consumer.Config{
		Stream: "orders", App: "slow", WorkerID: fmt.Sprintf("w%d", len(f.workers)+1),
		Kinesis: f.server.Kinesis(), DynamoDB: f.server.DynamoDB(), MaxRecords: 10,
		Handler: func(ctx context.Context, b *consumer.Batch) error {
			size := 0
			for _, r := range b.Records {
				size += len(r.Data)
			}
			select {
			case turn <- struct{}{}:
			case <-ctx.Done():
				return ctx.Err()
			}
			defer func() { <-turn }()
			return retry.Wait(ctx, time.Duration(size)*time.Second/time.Duration(f.rate))
		},
	})
	if err != nil {
		f.Fatal(err)
	}
	f.workers = append(f.workers, w)
	go func() { f.ended <- w.Run(ctx) }()
}

// feed puts so many bytes a second into each of the shards.
func (f *slowFleet) feed(ctx context.Context, shards, bytesASecond int) {
	ranges := keyspace.Uniform(shards)
	for ; ctx.Err() == nil; _ = retry.Wait(ctx, time.Second) {
		in := &kinesis.PutRecordsInput{StreamName: aws.String("orders")}
		for _, r := range ranges {
			in.Records = append(in.Records, types.PutRecordsRequestEntry{
				Data: bytes.Repeat([]byte("x"), bytesASecond), PartitionKey: aws.String("k"),
				ExplicitHashKey: aws.String(r.Start.String()),
			})
		}
		if _, err := f.server.Kinesis().PutRecords(ctx, in); err != nil && ctx.Err() == nil {
			f.Error(err)
		}
	}
}

func (f *slowFleet) outlook(within time.Duration) outlook {
	f.Helper()
	table, err := lease.Find(f.Context(), lease.Config{DynamoDB: f.server.DynamoDB(), Table: "slow"})
	if err != nil {
		f.Fatal(err)
	}
	leases, _, err := table.List(f.Context())
	if err != nil {
		f.Fatal(err)
	}
	return outlookOf(leases, time.Now(), within)
}

// A fleet that falls behind needs so many workers, by its rows, and with these, and with no fewer,
// its backlog is gone in the time. At the tip the number falls as the load does.
func TestDesiredWorkersOfAFleet(t *testing.T) {
	const shards, kib = 8, 1 << 10
	synctest.Test(t, func(t *testing.T) {
		f := &slowFleet{
			T: t, rate: 50 * kib, ended: make(chan error, 10),
			server: runneltest.NewServer(t, runneltest.InMemory(), runneltest.WithStream("orders", shards)),
		}
		ctx, stop := context.WithCancel(t.Context())
		feeding, calm := context.WithCancel(ctx)
		go f.feed(feeding, shards, 10*kib)
		f.start(ctx)
		<-time.After(5 * time.Minute)
		// Two workers have 4 shards each. These need 40 KiB/s for what arrives and 3.75 for the backlog,
		// of 50: the measured rate of a minute may be a tenth off.
		o := f.outlook(20 * time.Minute)
		t.Logf("one worker: %+v", o)
		if o.desired != 2 || o.gone >= 0 || o.workers != 1 {
			t.Errorf("%d workers wanted, gone in %s, %d there; want 2, never, 1", o.desired, o.gone, o.workers)
		}
		if off := o.perWorker / (50 * kib); off < 0.88 || off > 1.12 {
			t.Errorf("a worker's rate is %.0f, want %d", o.perWorker, 50*kib)
		}
		if off := o.ingest / (80 * kib); off < 0.9 || off > 1.1 {
			t.Errorf("%.0f bytes a second arrive, want %d", o.ingest, 80*kib)
		}
		if off := o.backlog / (300 * 30 * kib); off < 0.8 || off > 1.2 {
			t.Errorf("the backlog is %.0f bytes, want %d", o.backlog, 300*30*kib)
		}
		if soon := f.outlook(2 * time.Minute); soon.desired < 3 {
			t.Errorf("%d workers in two minutes", soon.desired)
		}
		f.start(ctx)
		<-time.After(2 * time.Minute) // the averages forget the time before
		o = f.outlook(10 * time.Minute)
		t.Logf("two workers: %+v", o)
		predicted := o.gone
		began := time.Now()
		for f.outlook(time.Minute).behind > atTip && time.Since(began) < 20*time.Minute {
			<-time.After(5 * time.Second)
		}
		took := time.Since(began)
		t.Logf("predicted %s, took %s", predicted, took)
		// The time is the backlog by a difference: 100 KiB/s less 80. Where the first is a tenth off,
		// the difference is off by half.
		if off := o.rate / (100 * kib); off < 0.88 || off > 1.12 {
			t.Errorf("the rate of two workers is %.0f, want %d", o.rate, 100*kib)
		}
		if took > 8*time.Minute || predicted < took/2 || predicted > took*2 {
			t.Errorf("gone in %s after two minutes, and %s was predicted", took, predicted)
		}
		<-time.After(time.Minute)
		if o = f.outlook(10 * time.Minute); o.desired != 2 || o.gone != 0 {
			t.Errorf("at the tip: %+v", o)
		}
		calm()
		feeding, calm = context.WithCancel(ctx)
		defer calm()
		go f.feed(feeding, shards, 2*kib)
		<-time.After(2 * time.Minute)
		if o = f.outlook(10 * time.Minute); o.desired != 1 || o.workers != 2 {
			t.Errorf("with a fifth of the load: %+v", o)
		}
		stop()
		for range f.workers {
			if err := <-f.ended; err != nil {
				t.Error(err)
			}
		}
	})
}
