package bench

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/runnel-stream/runnel/consumer"
	"github.com/runnel-stream/runnel/runneltest"
)

const polledShards = 4

// BenchmarkPolling reads a trickle, ten records a second into each of four shards, under AWS's
// limits. It reports the part of the GetRecords calls that was throttled, and the time from put to
// handler. "two" has two applications for ten minutes, two minutes after the second's start, and
// reports the smaller one's part of the answered calls. It runs if RUNNEL_BENCH_MINUTES names the
// minutes.
func BenchmarkPolling(b *testing.B) {
	for name, rate := range map[string]float64{"rate=5": 5, "rate=default": 0} {
		b.Run("one/"+name, func(b *testing.B) {
			p := newPolling(b)
			first := p.start("first", rate)
			p.put(10 * time.Second)
			p.forget(first)
			p.put(time.Minute)
			p.report(first)
		})
	}
	b.Run("two", func(b *testing.B) {
		minutes, err := strconv.Atoi(os.Getenv("RUNNEL_BENCH_MINUTES"))
		if err != nil {
			b.Skip("RUNNEL_BENCH_MINUTES is not set")
		}
		p := newPolling(b)
		first := p.start("first", 5)
		p.put(10 * time.Second)
		second := p.start("second", 5)
		p.put(2 * time.Minute)
		p.forget(first, second)
		p.put(time.Duration(minutes) * time.Minute)
		p.report(first, second)
	})
}

// polling is a server with AWS's limits and its readers.
type polling struct {
	*testing.B
	aws aws.Config

	mu    sync.Mutex
	times []time.Duration
}

// newPolling starts a server, or takes the one at RUNNEL_BENCH_ENDPOINT, which needs --limits aws.
func newPolling(b *testing.B) *polling {
	p := &polling{B: b}
	if endpoint := os.Getenv("RUNNEL_BENCH_ENDPOINT"); endpoint != "" {
		p.aws = aws.Config{
			Region: "us-east-1", BaseEndpoint: &endpoint,
			Credentials: aws.AnonymousCredentials{},
		}
	} else {
		p.aws = runneltest.NewServer(b, runneltest.WithLimits("aws")).AWSConfig()
	}
	client := kinesis.NewFromConfig(p.aws)
	name := aws.String(streamName(b))
	_, err := client.CreateStream(b.Context(), &kinesis.CreateStreamInput{
		StreamName: name, ShardCount: aws.Int32(polledShards),
	})
	if err == nil {
		err = kinesis.NewStreamExistsWaiter(client).Wait(b.Context(),
			&kinesis.DescribeStreamInput{StreamName: name}, time.Minute)
	}
	if err != nil {
		b.Fatal(err)
	}
	return p
}

func streamName(b *testing.B) string {
	name := []byte(b.Name())
	for i, c := range name {
		if c == '/' || c == '=' {
			name[i] = '-'
		}
	}
	return string(name)
}

// put puts the trickle for a while.
func (p *polling) put(lasts time.Duration) {
	client := kinesis.NewFromConfig(p.aws)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for began := time.Now(); time.Since(began) < lasts; <-tick.C {
		in := &kinesis.PutRecordsInput{StreamName: aws.String(streamName(p.B))}
		for i := range polledShards {
			hash := new(big.Int).Lsh(big.NewInt(int64(i)), 126)
			in.Records = append(in.Records, types.PutRecordsRequestEntry{
				PartitionKey: aws.String("k"), ExplicitHashKey: aws.String(hash.String()),
				Data: []byte(strconv.FormatInt(time.Now().UnixNano(), 10)),
			})
		}
		if _, err := client.PutRecords(p.Context(), in); err != nil {
			p.Fatal(err)
		}
	}
}

// calls counts the GetRecords calls of a client.
type calls struct {
	*kinesis.Client
	mu                  sync.Mutex
	answered, throttled int
}

// GetRecords calls the client's and counts.
func (c *calls) GetRecords(
	ctx context.Context, in *kinesis.GetRecordsInput, options ...func(*kinesis.Options),
) (*kinesis.GetRecordsOutput, error) {
	out, err := c.Client.GetRecords(ctx, in, options...)
	var throttle *types.ProvisionedThroughputExceededException
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err == nil:
		c.answered++
	case errors.As(err, &throttle):
		c.throttled++
	}
	return out, err
}

// start runs a worker of an application until the benchmark ends.
func (p *polling) start(app string, rate float64) *calls {
	client := &calls{Client: kinesis.NewFromConfig(p.aws)}
	w, err := consumer.New(consumer.Config{
		Stream: streamName(p.B), App: fmt.Sprint(streamName(p.B), "-", app), ReadRate: rate,
		Kinesis: client, DynamoDB: dynamodb.NewFromConfig(p.aws), Handler: p.handle,
	})
	if err != nil {
		p.Fatal(err)
	}
	ctx, cancel := context.WithCancel(p.Context())
	var group sync.WaitGroup
	group.Go(func() {
		if err := w.Run(ctx); err != nil {
			p.Error(err)
		}
	})
	p.Cleanup(func() {
		cancel()
		group.Wait()
	})
	return client
}

func (p *polling) handle(_ context.Context, batch *consumer.Batch) error {
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range batch.Records {
		nanos, err := strconv.ParseInt(string(batch.Records[i].Data), 10, 64)
		if err != nil {
			return err
		}
		p.times = append(p.times, now.Sub(time.Unix(0, nanos)))
	}
	return nil
}

func (p *polling) forget(clients ...*calls) {
	for _, c := range clients {
		c.mu.Lock()
		c.answered, c.throttled = 0, 0
		c.mu.Unlock()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.times = nil
}

func (p *polling) report(clients ...*calls) {
	answered, throttled, least := 0, 0, 1<<30
	for _, c := range clients {
		c.mu.Lock()
		answered, throttled, least = answered+c.answered, throttled+c.throttled, min(least, c.answered)
		c.mu.Unlock()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	slices.Sort(p.times)
	ms := func(q float64) float64 {
		return float64(p.times[int(q*float64(len(p.times)-1))].Microseconds()) / 1000
	}
	p.ReportMetric(float64(answered+throttled), "calls")
	p.ReportMetric(100*float64(throttled)/float64(answered+throttled), "%throttled")
	p.ReportMetric(100*float64(least)/float64(answered), "%least")
	p.ReportMetric(ms(0.5), "ms-median")
	p.ReportMetric(ms(0.99), "ms-p99")
	p.ReportMetric(float64(len(p.times)), "records")
	p.ReportMetric(0, "ns/op")
}
