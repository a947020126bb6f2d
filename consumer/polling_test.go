package consumer_test

import (
	"context"
	"math/big"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/runnel-stream/runnel/consumer"
	"github.com/runnel-stream/runnel/internal/awserr"
	"github.com/runnel-stream/runnel/runneltest"
)

// counted counts the GetRecords calls of a client.
type counted struct {
	*kinesis.Client
	mu                  turn
	answered, throttled int
}

func (c *counted) GetRecords(
	ctx context.Context, in *kinesis.GetRecordsInput, o ...func(*kinesis.Options),
) (*kinesis.GetRecordsOutput, error) {
	out, err := c.Client.GetRecords(ctx, in, o...)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err == nil:
		c.answered++
	case awserr.Kinesis.Of(err) == awserr.Throttled:
		c.throttled++
	}
	return out, err
}

// reset returns the counts and begins again.
func (c *counted) reset() (answered, throttled int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	answered, throttled = c.answered, c.throttled
	c.answered, c.throttled = 0, 0
	return answered, throttled
}

// trickle puts a few records a second into every shard of a server with AWS's limits, and measures
// their times from put to handler.
type trickle struct {
	*testing.T
	server *runneltest.Server
	shards int

	mu    turn
	times []time.Duration
}

func newTrickle(t *testing.T, shards int) *trickle {
	return &trickle{T: t, shards: shards, mu: make(turn, 1), server: runneltest.NewServer(t,
		runneltest.InMemory(), runneltest.WithStream("orders", shards),
		runneltest.WithLimits("aws"))}
}

// put puts a record into every shard at each interval for a while.
func (f *trickle) put(every, lasts time.Duration) {
	for began := time.Now(); time.Since(began) < lasts; <-time.After(every) {
		in := &kinesis.PutRecordsInput{StreamName: aws.String("orders")}
		for i := range f.shards {
			in.Records = append(in.Records, types.PutRecordsRequestEntry{
				PartitionKey: aws.String("k"), ExplicitHashKey: aws.String(lowKey(i, f.shards)),
				Data: []byte(strconv.FormatInt(time.Now().UnixNano(), 10)),
			})
		}
		if _, err := f.server.Kinesis().PutRecords(f.Context(), in); err != nil {
			f.Error(err)
			return
		}
	}
}

// lowKey is the lowest hash key of the i-th of n shards, and a little more.
func lowKey(i, n int) string {
	key := new(big.Int).Lsh(big.NewInt(int64(i)), 128)
	return key.Div(key, big.NewInt(int64(n))).Add(key, big.NewInt(1000)).String()
}

// start runs a worker of an application until ctx ends.
func (f *trickle) start(
	ctx context.Context, group *sync.WaitGroup, app string, change func(*consumer.Config),
) *counted {
	client := &counted{Client: f.server.Kinesis(), mu: make(turn, 1)}
	cfg := consumer.Config{
		Stream: "orders", App: app, ReadRate: 5, Kinesis: client, DynamoDB: f.server.DynamoDB(),
		CheckpointInterval: time.Minute,
		Handler: func(_ context.Context, b *consumer.Batch) error {
			f.mu.Lock()
			defer f.mu.Unlock()
			for i := range b.Records {
				nanos, err := strconv.ParseInt(string(b.Records[i].Data), 10, 64)
				if err != nil {
					return err
				}
				f.times = append(f.times, time.Since(time.Unix(0, nanos)))
			}
			return nil
		},
	}
	if change != nil {
		change(&cfg)
	}
	w, err := consumer.New(cfg)
	if err != nil {
		f.Fatal(err)
	}
	group.Go(func() {
		if err := w.Run(ctx); err != nil {
			f.Error(err)
		}
	})
	return client
}

func (f *trickle) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.times = nil
}

func (f *trickle) handled() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.times)
}

// quantile returns a quantile of the times of the records so far.
func (f *trickle) quantile(q float64) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.times) == 0 {
		return 0
	}
	slices.Sort(f.times)
	return f.times[min(int(q*float64(len(f.times))), len(f.times)-1)]
}

// Under AWS's limits a trickle into four shards is handled soon, without a throttled call, whether
// the rate is 5 or learnt. Idle shards then cost two calls a second each.
func TestPollingOfATrickle(t *testing.T) {
	for _, learnt := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			f := newTrickle(t, 4)
			ctx, stop := context.WithCancel(t.Context())
			var group sync.WaitGroup
			client := f.start(ctx, &group, "orders-app", func(c *consumer.Config) {
				if learnt {
					c.ReadRate = 0
				}
			})
			f.put(100*time.Millisecond, 30*time.Second)
			client.reset()
			f.forget()
			f.put(100*time.Millisecond, time.Minute)
			answered, throttled := client.reset()
			median, p99 := f.quantile(0.5), f.quantile(0.99)
			t.Logf("%d calls answered, %d throttled; handled after %s (median), %s (p99)", answered,
				throttled, median, p99)
			if n := f.handled(); n < 2300 || median > 150*time.Millisecond ||
				p99 > 450*time.Millisecond {
				t.Errorf("%d records were handled after %s (median), %s (p99)", n, median, p99)
			}
			if throttled > 0 && !learnt || throttled > answered/25 {
				t.Errorf("%d calls were throttled, %d answered", throttled, answered)
			}
			if !learnt {
				<-time.After(10 * time.Second)
				client.reset()
				<-time.After(time.Minute)
				if answered, _ := client.reset(); answered > 480 {
					t.Errorf("%d calls in a minute of four idle shards", answered)
				}
			}
			stop()
			group.Wait()
		})
	}
}

// Two applications read one stream under AWS's limits: after two minutes few of their calls are
// throttled, and each has its share.
func TestPollingOfTwoApplications(t *testing.T) {
	if underRace {
		t.Skip("a number of calls, and no new sharing of memory: half a minute under the detector")
	}
	synctest.Test(t, func(t *testing.T) {
		f := newTrickle(t, 1)
		ctx, stop := context.WithCancel(t.Context())
		var group sync.WaitGroup
		first := f.start(ctx, &group, "first", nil)
		f.put(200*time.Millisecond, 20*time.Second)
		second := f.start(ctx, &group, "second", nil)
		f.put(200*time.Millisecond, 2*time.Minute)
		first.reset()
		second.reset()
		f.forget()
		f.put(200*time.Millisecond, 10*time.Minute)
		a, at := first.reset()
		b, bt := second.reset()
		t.Logf("answered %d and %d, throttled %d and %d; handled after %s (median), %s (p99)", a, b,
			at, bt, f.quantile(0.5), f.quantile(0.99))
		if all := a + b + at + bt; at+bt > all/50 || all < 4*600 {
			t.Errorf("%d of %d calls were throttled", at+bt, all)
		}
		if least := min(a, b); least*100 < (a+b)*40 {
			t.Errorf("one application has %d of %d answered calls", least, a+b)
		}
		stop()
		group.Wait()
	})
}
