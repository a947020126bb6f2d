package consumer_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/runnel-stream/runnel/consumer"
	"github.com/runnel-stream/runnel/internal/seam"
	"github.com/runnel-stream/runnel/runneltest"
)

// onServer runs a test with a real server, in virtual time.
func onServer(t *testing.T, shards int, run func(*ledger), options ...runneltest.Option) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		run(newLedger(t, runneltest.NewServer(t, append([]runneltest.Option{
			runneltest.InMemory(), runneltest.WithStream("orders", shards),
		}, options...)...)))
	})
}

// run runs a worker until the returned function ends it with a cause, and returns its error.
func (l *ledger) run(id string, change ...func(*consumer.Config)) (end func(cause error) error) {
	l.Helper()
	w := l.worker(id, change...)
	ctx, cancel := context.WithCancelCause(l.Context())
	result := make(chan error, 1)
	go func() { result <- w.Run(ctx) }()
	return func(cause error) error {
		cancel(cause)
		return <-result
	}
}

// events returns the events of a kind.
func (l *ledger) happened(kind consumer.EventKind) (found []consumer.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.events {
		if e.Kind == kind {
			found = append(found, e)
		}
	}
	return found
}

// awaitEvents waits for n events of a kind.
func (l *ledger) awaitEvents(kind consumer.EventKind, n int, limit time.Duration) {
	l.Helper()
	for began := time.Now(); len(l.happened(kind)) < n; <-time.After(20 * time.Millisecond) {
		if time.Since(began) > limit {
			l.Fatalf("%d events %s within %s, want %d", len(l.happened(kind)), kind, limit, n)
		}
	}
}

func (l *ledger) exactly() {
	l.Helper()
	if l.delivered() != l.total || l.again > 0 {
		l.Errorf("%d of %d records were delivered, and %d again", l.delivered(), l.total, l.again)
	}
}

func (l *ledger) consumers() (arns []string) {
	l.Helper()
	client := l.server.Kinesis()
	d, err := client.DescribeStreamSummary(l.Context(),
		&kinesis.DescribeStreamSummaryInput{StreamName: aws.String("orders")})
	if err != nil {
		l.Fatal(err)
	}
	list, err := client.ListStreamConsumers(l.Context(),
		&kinesis.ListStreamConsumersInput{StreamARN: d.StreamDescriptionSummary.StreamARN})
	if err != nil {
		l.Fatal(err)
	}
	for _, c := range list.Consumers {
		arns = append(arns, *c.ConsumerARN)
	}
	return arns
}

// Workers that start together register one consumer, and none deregisters it.
func TestFanoutRegistersOneConsumer(t *testing.T) {
	onServer(t, 4, func(l *ledger) {
		var ends []func(error) error
		for _, id := range []string{"w1", "w2", "w3"} {
			ends = append(ends, l.run(id, byFanout))
		}
		l.send(100)
		l.await(30 * time.Second)
		for _, end := range ends {
			if err := end(nil); err != nil {
				l.Error(err)
			}
		}
		l.exactly()
		arns := l.consumers()
		if len(arns) != 1 || !strings.Contains(arns[0], "/consumer/orders-app:") {
			l.Errorf("the consumers are %v", arns)
		}
		if n := len(l.happened(consumer.EventFailed)); n > 0 {
			l.Errorf("%d failures: %v", n, l.happened(consumer.EventFailed)[0].Err)
		}
		// The next worker finds it by its ARN.
		end := l.run("w4", func(c *consumer.Config) { c.Fanout = &consumer.Fanout{Consumer: arns[0]} })
		l.send(100)
		l.await(30 * time.Second)
		l.exactly()
		if err := end(nil); err != nil || len(l.consumers()) != 1 {
			l.Errorf("%v, %v", err, l.consumers())
		}
	})
}

// A subscription is renewed every five minutes while records flow: nothing is lost, nothing comes
// twice, and no record waits.
func TestFanoutRenewsEveryFiveMinutes(t *testing.T) {
	if underRace {
		t.Skip("SKIP: 21 minutes of virtual time; TestFanoutRenewals renews under the race detector")
	}
	onServer(t, 2, func(l *ledger) {
		end := l.run("w1", byFanout)
		l.awaitEvents(consumer.EventSubscribed, 2, time.Minute)
		for range 21 * 60 {
			l.send(2)
			<-time.After(time.Second)
		}
		l.await(time.Second)
		l.exactly()
		if n := len(l.happened(consumer.EventSubscribed)); n != 10 {
			l.Errorf("%d subscriptions of 2 shards in 21 minutes, want 10", n)
		}
		if n := len(l.happened(consumer.EventFailed)); n > 0 {
			l.Errorf("%d failures: %v", n, l.happened(consumer.EventFailed)[0].Err)
		}
		if err := end(nil); err != nil {
			l.Error(err)
		}
	})
}

// A handler that takes longer than a subscription stops the stream. Then it goes on at the right
// record.
func TestFanoutWithSlowHandler(t *testing.T) {
	onServer(t, 1, func(l *ledger) {
		blocked, release := make(chan struct{}), make(chan struct{})
		var once sync.Once
		end := l.run("w1", byFanout, func(c *consumer.Config) {
			c.MaxRecords = 10
			c.Handler = func(ctx context.Context, b *consumer.Batch) error {
				once.Do(func() {
					close(blocked)
					<-release
				})
				return l.handle(ctx, b)
			}
		})
		l.send(1)
		<-blocked
		for range 20 {
			l.send(500)
			<-time.After(time.Minute)
		}
		close(release)
		l.await(30 * time.Second)
		l.exactly()
		if err := end(nil); err != nil {
			l.Error(err)
		}
	})
}

// A worker that stops while events wait for a slow handler leaves no goroutine of the SDK behind:
// the bubble would not end. The next worker goes on at the right record.
func TestFanoutStopsWhileEventsWait(t *testing.T) {
	onServer(t, 1, func(l *ledger) {
		blocked := make(chan struct{})
		var once sync.Once
		end := l.run("w1", byFanout, func(c *consumer.Config) {
			c.Handler = func(ctx context.Context, b *consumer.Batch) error {
				once.Do(func() {
					close(blocked)
					<-time.After(20 * time.Second)
				})
				return l.handle(ctx, b)
			}
		})
		l.send(1)
		<-blocked
		for range 10 {
			l.send(5)
			<-time.After(time.Second)
		}
		if err := end(nil); err != nil {
			l.Error(err)
		}
		if l.delivered() == l.total {
			l.Error("nothing waited")
		}
		end = l.run("w2", byFanout)
		l.await(30 * time.Second)
		l.exactly()
		if err := end(nil); err != nil {
			l.Error(err)
		}
	})
}

// A consumer that is deregistered while it is read by is registered again, and the reading goes on
// at the same record.
func TestFanoutAfterDeregistration(t *testing.T) {
	onServer(t, 2, func(l *ledger) {
		end := l.run("w1", byFanout)
		l.send(10)
		l.await(30 * time.Second)
		_, err := l.server.Kinesis().DeregisterStreamConsumer(l.Context(),
			&kinesis.DeregisterStreamConsumerInput{ConsumerARN: aws.String(l.consumers()[0])})
		if err != nil {
			l.Fatal(err)
		}
		l.send(10)
		l.await(30 * time.Second)
		l.exactly()
		if err := end(nil); err != nil {
			l.Error(err)
		}
	}, runneltest.WithStreamDelay(3*time.Second))
}

// With OrPoll a worker that may not subscribe polls, says so, and subscribes when it may.
func TestFanoutOrPoll(t *testing.T) {
	for _, operation := range []string{
		"DescribeStreamConsumer", "RegisterStreamConsumer", "SubscribeToShard",
	} {
		t.Run(operation, func(t *testing.T) {
			onServer(t, 2, func(l *ledger) {
				if err := l.server.SetFaults(operation + ":refuse=AccessDeniedException"); err != nil {
					l.Fatal(err)
				}
				end := l.run("w1", func(c *consumer.Config) {
					c.Fanout = &consumer.Fanout{OrPoll: true}
				})
				l.send(10)
				l.await(10 * time.Second)
				l.awaitEvents(consumer.EventPolling, 2, time.Second)
				var denied *types.AccessDeniedException
				if err := l.happened(consumer.EventPolling)[0].Err; !errors.As(err, &denied) {
					l.Errorf("the reason is %v", err)
				}
				if n := len(l.happened(consumer.EventSubscribed)); n > 0 {
					l.Errorf("%d subscriptions", n)
				}
				if err := l.server.SetFaults(""); err != nil {
					l.Fatal(err)
				}
				l.awaitEvents(consumer.EventSubscribed, 2, 3*time.Minute)
				l.send(10)
				l.await(10 * time.Second)
				l.exactly()
				if err := end(nil); err != nil {
					l.Error(err)
				}
			})
		})
	}
}

// Without OrPoll a worker that can have no consumer does not start, and Run says why.
func TestFanoutRefused(t *testing.T) {
	other := "arn:aws:kinesis:eu-west-1:000000000000:stream/orders/consumer/app:1"
	for _, c := range []struct {
		name   string
		faults string
		fan    consumer.Fanout
		text   string
		after  time.Duration
	}{
		{
			"access", "RegisterStreamConsumer:refuse=AccessDeniedException",
			consumer.Fanout{},
			"register consumer orders-app", 0,
		},
		{
			"another stream", "",
			consumer.Fanout{Consumer: other, OrPoll: true},
			other + " is not a consumer of arn:aws:kinesis:us-east-1:", 0,
		},
		{
			"an outage", "DescribeStreamConsumer:error-500",
			consumer.Fanout{},
			"find consumer orders-app", 30 * time.Second,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			onServer(t, 1, func(l *ledger) {
				if err := l.server.SetFaults(c.faults); err != nil {
					l.Fatal(err)
				}
				began := time.Now()
				err := l.worker("w1", func(cfg *consumer.Config) { cfg.Fanout = &c.fan }).
					Run(l.Context())
				if err == nil || !strings.Contains(err.Error(), c.text) {
					l.Errorf("Run returns %v", err)
				}
				if foreign := errors.Is(err, consumer.ErrOtherConsumer); foreign !=
					(c.fan.Consumer == other) {
					l.Errorf("%v is ErrOtherConsumer: %v", err, foreign)
				}
				if took := time.Since(began); took < c.after || took > 2*c.after+time.Second {
					l.Errorf("after %s, want %s", took, c.after)
				}
			})
		})
	}
}

// Once ends by enhanced fan-out as by polling, over shards that were closed before.
func TestFanoutOnce(t *testing.T) {
	onServer(t, 3, func(l *ledger) {
		l.send(400)
		l.reshard(0, false)
		l.send(400)
		l.reshard(1, true)
		l.send(400)
		if err := l.worker("w1", byFanout, once).Run(l.Context()); err != nil {
			l.Error(err)
		}
		l.exactly()
	})
}

// subscribing notes when a worker subscribes.
type subscribing struct {
	*kinesis.Client
	mu    sync.Mutex
	times []time.Time
}

func (s *subscribing) SubscribeToShard(
	ctx context.Context, in *kinesis.SubscribeToShardInput, o ...func(*kinesis.Options),
) (*kinesis.SubscribeToShardOutput, error) {
	s.mu.Lock()
	s.times = append(s.times, time.Now())
	s.mu.Unlock()
	return s.Client.SubscribeToShard(ctx, in, o...)
}

// A worker whose lease is over subscribes no more, so it cannot push out the shard's new owner.
// Here it cannot reach the table, and its streams are cut again and again.
func TestFanoutOnlyUnderLease(t *testing.T) {
	onServer(t, 2, func(l *ledger) {
		api := &subscribing{Client: l.server.Kinesis()}
		table := &link{DynamoDBAPI: l.server.DynamoDB()}
		end := l.run("w1", byFanout, func(c *consumer.Config) {
			c.Kinesis, c.DynamoDB = api, table
		})
		l.send(10)
		l.await(30 * time.Second)
		if err := l.server.SetFaults("SubscribeToShard:cut-stream=1s"); err != nil {
			l.Fatal(err)
		}
		cut := time.Now()
		mend := table.cut()
		other := l.run("w2", byFanout)
		for range 20 {
			l.send(10)
			<-time.After(time.Second)
		}
		l.await(30 * time.Second)
		api.mu.Lock()
		late := slices.IndexFunc(api.times, func(at time.Time) bool {
			return at.Sub(cut) > 2*time.Second // the failover time
		})
		if late >= 0 {
			l.Errorf("it subscribed %s after it lost the table", api.times[late].Sub(cut))
		}
		api.mu.Unlock()
		mend()
		for _, end := range []func(error) error{end, other} {
			if err := end(seam.ErrKilled); err != nil && !errors.Is(err, seam.ErrKilled) {
				l.Error(err)
			}
		}
	})
}

// polling is a client with the calls of KinesisAPI alone.
type polling struct{ consumer.KinesisAPI }

// The configuration names what is wrong with a Fanout.
func TestFanoutConfig(t *testing.T) {
	client := kinesis.New(kinesis.Options{})
	for _, c := range []struct {
		fan  consumer.Fanout
		api  consumer.KinesisAPI
		want string
	}{
		{consumer.Fanout{}, client, ""},
		{consumer.Fanout{Consumer: "reader"}, client, ""},
		{
			consumer.Fanout{Consumer: "arn:aws:kinesis:us-east-1:1:stream/orders/consumer/a:1"},
			client, "",
		},
		{consumer.Fanout{}, polling{client}, "Kinesis has no DescribeStreamConsumer and no " +
			"RegisterStreamConsumer and no SubscribeToShard, which Fanout needs"},
		{consumer.Fanout{Consumer: "a b"}, client, `Fanout.Consumer: "a b" is not the name`},
		{consumer.Fanout{Consumer: strings.Repeat("a", 129)}, client, "1 to 128 letters"},
		{
			consumer.Fanout{Consumer: "arn:aws:kinesis:us-east-1:1:stream/other/consumer/a:1"},
			client, "is a consumer of the stream other: want a consumer of orders",
		},
		{
			consumer.Fanout{Consumer: "arn:aws:kinesis:us-east-1:1:stream/orders"},
			client,
			"is not the ARN of a consumer",
		},
	} {
		cfg := consumer.Config{
			Stream: "orders", App: "app", Kinesis: c.api, DynamoDB: &link{}, Fanout: &c.fan,
			Handler: func(context.Context, *consumer.Batch) error { return nil },
		}
		switch err := cfg.Validate(); {
		case c.want == "" && err != nil, c.want != "" && err == nil:
			t.Errorf("%+v: %v", c.fan, err)
		case err != nil && (!strings.Contains(err.Error(), c.want) ||
			strings.Contains(err.Error(), "\n")):
			t.Errorf("%+v: %v, want %q", c.fan, err, c.want)
		}
	}
}
