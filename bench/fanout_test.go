package bench

import (
	"context"
	"encoding/binary"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"
)

const (
	subscribers  = 20
	putEvery     = 5 * time.Millisecond // 200 records a second, one a call
	fanOutRecord = 100                  // bytes
)

// BenchmarkFanOut measures the time of a record to each of 20 enhanced fan-out consumers of one
// shard. One figure counts from the call of PutRecord, which includes the commit. The other one
// counts from the acknowledgement and is 0 for a record that arrives earlier. The same client
// measures each server, on the same two cores.
func BenchmarkFanOut(b *testing.B) {
	for _, peer := range []struct {
		name  string
		start func(testing.TB) *kinesis.Client
	}{
		{"runnel", startRunnel},
		{"ferrokinesis", startFerrokinesis},
	} {
		b.Run(peer.name, func(b *testing.B) { fanOut(b, peer.start(b)) })
	}
}

// delivery has three times of each record, in ns since an origin: its put, its acknowledgement,
// and its arrival at each consumer.
type delivery struct {
	origin   time.Time
	put, ack []int64
	received [subscribers][]int64
}

func (d *delivery) now() int64 { return int64(time.Since(d.origin)) }

func fanOut(b *testing.B, client *kinesis.Client) {
	const stream = "fan-out"
	arn := makeStream(b, client, stream)
	d := &delivery{origin: time.Now(), put: make([]int64, b.N), ack: make([]int64, b.N)}
	var ready, readers sync.WaitGroup
	ctx, cancel := context.WithTimeout(b.Context(), 10*time.Minute)
	defer cancel()
	var missing atomic.Int64
	missing.Store(int64(subscribers * b.N))
	for i := range subscribers {
		d.received[i] = make([]int64, b.N)
		events := subscribe(b, client, arn, i)
		ready.Add(1)
		readers.Go(func() {
			defer func() { _ = events.Close() }()
			ready.Done()
			for missing.Load() > 0 {
				select {
				case event, ok := <-events.Events():
					if !ok {
						b.Errorf("consumer %d: the stream ended: %v", i, events.Err())
						return
					}
					missing.Add(-d.receive(i, event))
				case <-ctx.Done():
					return
				case <-time.After(100 * time.Millisecond): // then check whether the others are done
				}
			}
		})
	}
	ready.Wait()
	b.ResetTimer()
	d.putAll(ctx, b, client, stream)
	readers.Wait()
	b.StopTimer()
	if left := missing.Load(); left != 0 {
		b.Fatalf("%d of %d records did not arrive", left, subscribers*b.N)
	}
	d.report(b)
}

// receive notes an event's records and returns their number.
func (d *delivery) receive(consumer int, event types.SubscribeToShardEventStream) int64 {
	now := d.now()
	member, ok := event.(*types.SubscribeToShardEventStreamMemberSubscribeToShardEvent)
	if !ok {
		return 0
	}
	for _, record := range member.Value.Records {
		d.received[consumer][binary.BigEndian.Uint64(record.Data)] = now
	}
	return int64(len(member.Value.Records))
}

// putAll puts the records one by one at a steady pace.
func (d *delivery) putAll(
	ctx context.Context, b *testing.B, client *kinesis.Client, stream string,
) {
	pace := time.NewTicker(putEvery)
	defer pace.Stop()
	var calls sync.WaitGroup
	for i := range d.put {
		select {
		case <-pace.C:
		case <-ctx.Done():
			b.Fatal(ctx.Err())
		}
		calls.Go(func() {
			data := make([]byte, fanOutRecord)
			binary.BigEndian.PutUint64(data, uint64(i))
			d.put[i] = d.now()
			_, err := client.PutRecord(ctx, &kinesis.PutRecordInput{
				StreamName: &stream, PartitionKey: aws.String("key"), Data: data,
			})
			d.ack[i] = d.now()
			if err != nil {
				b.Error(err)
			}
		})
	}
	calls.Wait()
}

func (d *delivery) report(b *testing.B) {
	var fromPut, fromAck []int64
	for _, received := range d.received {
		for i, at := range received {
			fromPut = append(fromPut, at-d.put[i])
			fromAck = append(fromAck, max(0, at-d.ack[i]))
		}
	}
	quantile := func(values []int64, q float64) float64 {
		slices.Sort(values)
		return float64(values[int(q*float64(len(values)-1))]) / 1e6
	}
	b.ReportMetric(quantile(fromPut, 0.5), "ms-put-p50")
	b.ReportMetric(quantile(fromPut, 0.99), "ms-put-p99")
	b.ReportMetric(quantile(fromAck, 0.5), "ms-ack-p50")
	b.ReportMetric(quantile(fromAck, 0.99), "ms-ack-p99")
	b.ReportMetric(0, "ns/op") // the pace is fixed, so the time an operation says nothing
}

// makeStream makes a stream of one shard, and returns its ARN once it is ACTIVE.
func makeStream(b *testing.B, client *kinesis.Client, name string) string {
	ctx := b.Context()
	_, err := client.CreateStream(ctx, &kinesis.CreateStreamInput{
		StreamName: &name, ShardCount: aws.Int32(1),
	})
	if err != nil {
		b.Fatal(err)
	}
	waiter := kinesis.NewStreamExistsWaiter(client, func(o *kinesis.StreamExistsWaiterOptions) {
		o.MinDelay, o.MaxDelay = 50*time.Millisecond, time.Second
	})
	out, err := waiter.WaitForOutput(ctx, &kinesis.DescribeStreamInput{StreamName: &name},
		time.Minute)
	if err != nil {
		b.Fatal(err)
	}
	return *out.StreamDescription.StreamARN
}

// subscribe registers a consumer and subscribes it to the stream's shard.
func subscribe(
	b *testing.B, client *kinesis.Client, stream string, number int,
) *kinesis.SubscribeToShardEventStream {
	ctx := b.Context()
	name := "consumer-" + string(rune('a'+number))
	registered, err := client.RegisterStreamConsumer(ctx, &kinesis.RegisterStreamConsumerInput{
		StreamARN: &stream, ConsumerName: &name,
	})
	if err != nil {
		b.Fatal(err)
	}
	consumer := registered.Consumer.ConsumerARN
	for tries := 0; ; tries++ {
		out, err := client.DescribeStreamConsumer(ctx, &kinesis.DescribeStreamConsumerInput{
			ConsumerARN: consumer,
		})
		if err == nil && out.ConsumerDescription.ConsumerStatus == types.ConsumerStatusActive {
			break
		}
		if tries == 100 {
			b.Fatalf("consumer %s is not ACTIVE: %v", name, err)
		}
		time.Sleep(20 * time.Millisecond)
	}
	own := kinesis.New(client.Options()) // see docs/serve.md on the Go SDK
	out, err := own.SubscribeToShard(ctx, &kinesis.SubscribeToShardInput{
		ConsumerARN: consumer, ShardId: aws.String("shardId-000000000000"),
		StartingPosition: &types.StartingPosition{Type: types.ShardIteratorTypeTrimHorizon},
	})
	if err != nil {
		b.Fatal(err)
	}
	return out.GetStream()
}
