package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"

	"github.com/runnel-stream/runnel/consumer"
	"github.com/runnel-stream/runnel/runneltest"
)

// watcher is CloudWatch: a real server's, which checks the input as AWS does, if there is one.
type watcher struct {
	server consumer.CloudWatchAPI
	answer func(ctx context.Context, call int) error // may fail a call

	mu    sync.Mutex
	calls []watched
}

type watched struct {
	at   time.Time
	data []types.MetricDatum
}

func (w *watcher) PutMetricData(
	ctx context.Context, in *cloudwatch.PutMetricDataInput, o ...func(*cloudwatch.Options),
) (*cloudwatch.PutMetricDataOutput, error) {
	w.mu.Lock()
	w.calls = append(w.calls, watched{time.Now(), in.MetricData})
	n := len(w.calls)
	w.mu.Unlock()
	if w.answer != nil {
		if err := w.answer(ctx, n); err != nil {
			return nil, err
		}
	}
	if w.server == nil {
		return &cloudwatch.PutMetricDataOutput{}, nil
	}
	return w.server.PutMetricData(ctx, in, o...)
}

// sum returns the sum and the number of a metric's values, of all dimensions with these names.
func (w *watcher) sum(name, dimensions string) (sum, n float64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, call := range w.calls {
		for _, d := range call.data {
			var names []string
			for _, of := range d.Dimensions {
				names = append(names, *of.Name)
			}
			if *d.MetricName != name || strings.Join(names, ",") != dimensions {
				continue
			}
			for i, value := range d.Values {
				sum += value * d.Counts[i]
				n += d.Counts[i]
			}
		}
	}
	return sum, n
}

func into(w *watcher) func(*consumer.Config) {
	return func(c *consumer.Config) {
		c.CloudWatch = &consumer.CloudWatch{API: w, Namespace: "Orders/Consumers", PerShard: true}
	}
}

// Workers publish the seed's metrics in one call every ten seconds, fleet figures from watchers
// alone, and each record once, over hand-overs and to the end.
func TestCloudWatch(t *testing.T) {
	bubble(t, 4, func(f *fleet) {
		of := map[string]*watcher{"w1": {}, "w2": {}, "w3": {}}
		for id, w := range of {
			f.start(id, into(w))
		}
		puts := 0
		for range 40 {
			puts += len(f.stream.put("four", keys(20)...))
			<-time.After(3 * time.Second)
		}
		for id, w := range of {
			if got, want := w.lastFleet(), f.workers[id].Status().Watching; got != want {
				t.Errorf("%s sends the fleet's numbers: %v, it watches: %v", id, got, want)
			}
		}
		f.workers["w2"].stop()
		<-f.workers["w2"].err
		for range 10 {
			puts += len(f.stream.put("four", keys(20)...))
			<-time.After(3 * time.Second)
		}
		f.await(failover, "all records", func() bool { n, _ := f.delivered(); return n == puts })
		f.workers["w1"].stop()
		f.workers["w3"].stop()
		<-f.workers["w1"].err
		<-f.workers["w3"].err
		var records, each, bytes float64
		for id, w := range of {
			n, _ := w.sum("records", "App")
			records += n
			n, _ = w.sum("records", "App,ShardId")
			each += n
			n, _ = w.sum("bytes", "App")
			bytes += n
			gaps := map[time.Duration]int{}
			for i := 1; i < len(w.calls)-1; i++ { // the last one comes at the end
				gaps[w.calls[i].at.Sub(w.calls[i-1].at)]++
			}
			if len(gaps) != 1 || gaps[10*time.Second] == 0 {
				t.Errorf("%s: the calls are apart by %v", id, gaps)
			}
			watching, calls := 0, 0
			for _, call := range w.calls {
				if slices.ContainsFunc(call.data, isMetric("total_leases")) {
					watching++
				}
				if slices.ContainsFunc(call.data, isMetric("worker_leases")) {
					calls++
				}
			}
			want := f.workers[id].Status()
			t.Logf("%s: %d calls, %d with worker_leases, %d with total_leases", id, len(w.calls),
				calls, watching)
			if calls < len(w.calls)/2-1 || calls > len(w.calls)/2+1 || watching > calls {
				t.Errorf("%s: %+v", id, want)
			}
		}
		if records != float64(puts) || each != float64(puts) || bytes != float64(4*puts) {
			t.Errorf("%v and %v records, %v bytes; %d were put", records, each, bytes, puts)
		}
		leases, _ := of["w1"].sum("worker_leases", "App")
		if leases == 0 {
			t.Error("w1 holds none")
		}
	})
}

// lastFleet reports whether the last call with worker_leases has the fleet's numbers, too.
func (w *watcher) lastFleet() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, call := range slices.Backward(w.calls) {
		if slices.ContainsFunc(call.data, isMetric("worker_leases")) {
			return slices.ContainsFunc(call.data, isMetric("total_leases"))
		}
	}
	return false
}

func isMetric(name string) func(types.MetricDatum) bool {
	return func(d types.MetricDatum) bool { return *d.MetricName == name }
}

// Several hundred leases of one worker fit into one call.
func TestCloudWatchOfManyLeases(t *testing.T) {
	if underRace {
		t.Skip("SKIP: 300 leases; TestCloudWatch publishes under the race detector")
	}
	bubble(t, 300, func(f *fleet) {
		w := &watcher{}
		f.start("w1", into(w), func(c *consumer.Config) { c.CloudWatch.PerShard = false })
		f.await(time.Minute, "all leases", func() bool { return f.loads()["w1"] == 300 })
		<-time.After(15 * time.Second)
		for i, key := range keys(3000) {
			f.stream.put(strings.Repeat("x", i%1000), key)
		}
		<-time.After(30 * time.Second)
		if _, n := w.sum("millis_behind_latest", "App"); n != float64(300*len(w.calls)) {
			t.Errorf("%v values in %d calls", n, len(w.calls))
		}
		if n, _ := w.sum("records", "App"); n != 3000 {
			t.Errorf("%v records", n)
		}
		if len(w.calls) != 4 || len(w.calls[3].data) > 12 {
			t.Errorf("%d calls, the last one with %d data", len(w.calls), len(w.calls[3].data))
		}
		most := 0
		for _, call := range w.calls {
			for _, d := range call.data {
				most = max(most, len(d.Values))
			}
		}
		if most != 150 {
			t.Errorf("a datum has up to %d values, want AWS's 150", most)
		}
	})
}

// A real server, which checks the input as AWS does, takes the metrics.
func TestCloudWatchOfAServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := runneltest.NewServer(t, runneltest.InMemory(), runneltest.WithStream("orders", 3))
		w := &watcher{server: cloudwatch.NewFromConfig(server.AWSConfig())}
		var log lockedText
		worker, err := consumer.New(consumer.Config{
			Stream: "orders", App: "app", Kinesis: server.Kinesis(), DynamoDB: server.DynamoDB(),
			Handler:    func(context.Context, *consumer.Batch) error { return nil },
			CloudWatch: &consumer.CloudWatch{API: w, Namespace: "orders", PerShard: true},
			Logger:     slog.New(slog.NewTextHandler(&log, nil)),
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- worker.Run(ctx) }()
		<-time.After(time.Minute)
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if n, _ := w.sum("total_shards", "App"); n == 0 || log.String() != "" {
			t.Errorf("total_shards: %v; %s", n, &log)
		}
	})
}

// When CloudWatch fails or hangs, records are delivered as ever, the log says it seldom, and Run
// ends in time.
func TestCloudWatchFails(t *testing.T) {
	for _, hang := range []bool{false, true} {
		t.Run(fmt.Sprintf("hang %v", hang), func(t *testing.T) {
			bubble(t, 2, func(f *fleet) {
				w := &watcher{answer: func(ctx context.Context, n int) error {
					if n > 100 {
						return nil
					}
					if hang {
						<-ctx.Done()
						return ctx.Err()
					}
					return errors.New("no such place")
				}}
				var log lockedText
				m := f.start("w1", into(w), func(c *consumer.Config) {
					c.Logger = slog.New(slog.NewTextHandler(&log, nil))
				})
				for range 25 {
					f.stream.put("x", keys(10)...)
					<-time.After(time.Minute)
				}
				if n, again := f.delivered(); n != 250 || again != 0 {
					t.Errorf("%d records, %d again", n, again)
				}
				if len(f.happened(consumer.EventFailed)) > 0 || m.Status().Retries > 0 {
					t.Errorf("failures: %v", f.happened(consumer.EventFailed))
				}
				if lines := strings.Count(log.String(), "\n"); lines < 2 || lines > 5 ||
					!strings.Contains(log.String(), "takes metrics again") {
					t.Errorf("%d log lines:\n%s", lines, &log)
				}
				began := time.Now()
				m.stop()
				<-m.err
				if took := time.Since(began); took > 6*time.Second {
					t.Errorf("the end took %s", took)
				}
			})
		})
	}
}

// A wrong configuration is refused.
func TestCloudWatchConfig(t *testing.T) {
	for namespace, good := range map[string]bool{
		"": false, "AWS/Kinesis": false, ":a": false, "a b": false, "ä": false,
		strings.Repeat("n", 256): false, "Orders/Consumers": true, "orders": true,
	} {
		c := consumer.CloudWatch{API: &watcher{}, Namespace: namespace}
		err := consumer.Config{CloudWatch: &c}.Validate()
		if told := strings.Contains(err.Error(), "CloudWatch"); told == good {
			t.Errorf("%q: %v", namespace, err)
		}
	}
	err := consumer.Config{CloudWatch: &consumer.CloudWatch{Namespace: "n"}}.Validate()
	if !strings.Contains(err.Error(), "CloudWatch.API is missing") {
		t.Error(err)
	}
}
