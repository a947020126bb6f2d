package consumer_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/runnel-stream/runnel/consumer"
	"github.com/runnel-stream/runnel/runneltest"
)

// BenchmarkLatency measures the time from the put's answer to the handler, at 1,000 records a
// second over 16 shards, on a loopback socket with a durable server: by enhanced fan-out, and by
// polling. It is 0 for a record that arrives before its put's answer. Use -benchtime 20000x.
func BenchmarkLatency(b *testing.B) {
	for _, way := range []struct {
		name   string
		fanout *consumer.Fanout
	}{{"fanout", &consumer.Fanout{}}, {"polling", nil}} {
		b.Run(way.name, func(b *testing.B) { latency(b, way.fanout) })
	}
}

func latency(b *testing.B, fan *consumer.Fanout) {
	const shards, every = 16, time.Millisecond
	server := runneltest.NewServer(b, runneltest.WithStream("orders", shards),
		runneltest.WithDir(b.TempDir()))
	acked, handled := make([]atomic.Int64, b.N), make([]atomic.Int64, b.N)
	origin, arrived := time.Now(), make(chan struct{}, b.N)
	var begun sync.WaitGroup
	begun.Add(shards)
	w, err := consumer.New(consumer.Config{
		Stream: "orders", App: "orders-app", Fanout: fan,
		Kinesis: server.Kinesis(), DynamoDB: server.DynamoDB(),
		Handler: func(_ context.Context, batch *consumer.Batch) error {
			now := int64(time.Since(origin))
			for _, r := range batch.Records {
				handled[binary.BigEndian.Uint64(r.Data)].Store(now)
				arrived <- struct{}{}
			}
			return nil
		},
		OnEvent: func(e consumer.Event) {
			begins := consumer.EventSubscribed
			if fan == nil {
				begins = consumer.EventShardStarted
			}
			if e.Kind == begins {
				begun.Done()
			}
		},
	})
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(b.Context())
	var group sync.WaitGroup
	group.Go(func() {
		if err := w.Run(ctx); err != nil {
			b.Error(err)
		}
	})
	begun.Wait()
	b.ResetTimer()
	pace := time.NewTicker(every)
	defer pace.Stop()
	var calls sync.WaitGroup
	for i := range b.N {
		<-pace.C
		calls.Go(func() {
			_, err := server.Kinesis().PutRecord(ctx, &kinesis.PutRecordInput{
				StreamName: aws.String("orders"), PartitionKey: aws.String(fmt.Sprint(i)),
				Data: binary.BigEndian.AppendUint64(nil, uint64(i)),
			})
			acked[i].Store(int64(time.Since(origin)))
			if err != nil {
				b.Error(err)
			}
		})
	}
	calls.Wait()
	for range b.N {
		<-arrived
	}
	b.StopTimer()
	stop()
	group.Wait()
	took := make([]int64, b.N)
	for i := range took {
		took[i] = max(0, handled[i].Load()-acked[i].Load())
	}
	slices.Sort(took)
	for name, at := range map[string]float64{"p50": 0.5, "p99": 0.99, "max": 1} {
		b.ReportMetric(float64(took[int(at*float64(b.N-1))])/1e6, "ms-"+name)
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "records/s")
}
