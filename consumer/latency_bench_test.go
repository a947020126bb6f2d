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
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/runnel-stream/runnel/consumer"
	"github.com/runnel-stream/runnel/runneltest"
)

// BenchmarkLatency measures the time from the put's answer to the handler, at 1,000 records a
// second in calls of ten, over 16 shards, on a loopback socket with a durable server: by enhanced
// fan-out, and by polling. It is 0 for a record that arrives before its put's answer. Use -benchtime 20000x.
func BenchmarkLatency(b *testing.B) {
	for _, way := range []struct {
		name   string
		fanout *consumer.Fanout
	}{{"fanout", &consumer.Fanout{}}, {"polling", nil}} {
		b.Run(way.name, func(b *testing.B) { latency(b, way.fanout) })
	}
}

func latency(b *testing.B, fan *consumer.Fanout) {
	const shards, perCall, every = 16, 10, 10 * time.Millisecond
	server := runneltest.NewServer(b, runneltest.WithStream("orders", shards),
		runneltest.WithDir(b.TempDir()))
	acked, handled := make([]atomic.Int64, b.N), make([]atomic.Int64, b.N)
	origin, arrived := time.Now(), make(chan struct{}, b.N)
	begun, left := make(chan struct{}), atomic.Int64{}
	left.Store(shards)
	w, err := consumer.New(consumer.Config{
		Stream: "orders", App: "orders-app", Fanout: fan, Failover: time.Minute,
		Kinesis: server.Kinesis(), DynamoDB: server.DynamoDB(),
		Handler: func(_ context.Context, batch *consumer.Batch) error {
			now := int64(time.Since(origin))
			for _, r := range batch.Records {
				if handled[binary.BigEndian.Uint64(r.Data)].CompareAndSwap(0, now) {
					arrived <- struct{}{}
				}
			}
			return nil
		},
		OnEvent: func(e consumer.Event) {
			begins := consumer.EventSubscribed
			if fan == nil {
				begins = consumer.EventShardStarted
			}
			if e.Kind == begins && left.Add(-1) == 0 {
				close(begun)
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
	<-begun
	b.ResetTimer()
	start := time.Now()
	var calls sync.WaitGroup
	for i := 0; i < b.N; i += perCall {
		if wait := time.Until(start.Add(time.Duration(i/perCall) * every)); wait > 0 {
			<-time.After(wait)
		}
		in := &kinesis.PutRecordsInput{StreamName: aws.String("orders")}
		for n := i; n < min(i+perCall, b.N); n++ {
			in.Records = append(in.Records, types.PutRecordsRequestEntry{
				PartitionKey: aws.String(fmt.Sprint(n)),
				Data:         binary.BigEndian.AppendUint64(nil, uint64(n)),
			})
		}
		calls.Go(func() {
			_, err := server.Kinesis().PutRecords(ctx, in)
			now := int64(time.Since(origin))
			for n := range in.Records {
				acked[i+n].Store(now)
			}
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
