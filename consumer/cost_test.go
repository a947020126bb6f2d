package consumer_test

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/runnel-stream/runnel/consumer"
	"github.com/runnel-stream/runnel/runneltest"
)

// TestCost measures the units of a fleet's lease table that the server counts, in virtual time: at
// F = 10 s, idle, and with records in every shard. docs/fleet.md has the table.
func TestCost(t *testing.T) {
	skipUnderRace(t)
	for _, c := range []struct {
		leases, workers int
		writes, reads   float64 // units a second, at most
	}{
		{4, 2, 0.9, 1.5},
		{100, 10, 23, 12.5},
		{1_000, 50, 225, 100},
		{10_000, 200, 2_250, 1_000},
	} {
		t.Run(fmt.Sprintf("%d leases, %d workers", c.leases, c.workers), func(t *testing.T) {
			if c.leases > 100 && os.Getenv("RUNNEL_SOAK") == "" {
				t.Skip("a fleet of this size takes minutes: RUNNEL_SOAK=1")
			}
			for _, busy := range []bool{false, true} {
				writes, reads := fleetCost(t, c.leases, c.workers, busy)
				t.Logf("busy %v: %.2f writes/s, %.2f read units/s", busy, writes, reads)
				if writes > c.writes || reads > c.reads {
					t.Errorf("busy %v: %.2f writes/s and %.2f read units/s, want %v and %v at most",
						busy, writes, reads, c.writes, c.reads)
				}
			}
		})
	}
}

func skipUnderRace(t *testing.T) {
	t.Helper()
	if underRace {
		t.Skip("it counts units, of fleets that the other tests run under the detector")
	}
}

// Workers without a share of their own cost little: less than 0.7 read units a second each.
func TestCostOfMoreWorkers(t *testing.T) {
	skipUnderRace(t)
	_, few := fleetCost(t, 40, 10, false)
	_, many := fleetCost(t, 40, 20, false)
	each := (many - few) / 10
	t.Logf("10 workers more cost %.2f read units/s each", each)
	if each >= 0.7 {
		t.Errorf("10 workers more cost %.2f read units/s each", each)
	}
}

// fleetCost runs a fleet until it has settled, and returns its units a second over a minute.
func fleetCost(t *testing.T, leases, workers int, busy bool) (writes, reads float64) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server := runneltest.NewServer(t,
			runneltest.InMemory(), runneltest.WithStream("orders", leases))
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, workers)
		for n := range workers {
			w, err := consumer.New(consumer.Config{
				Stream: "orders", App: "cost", WorkerID: fmt.Sprintf("worker-%03d", n),
				Failover: failover, PollInterval: failover / 2,
				Kinesis: server.Kinesis(), DynamoDB: server.DynamoDB(),
				Handler: func(context.Context, *consumer.Batch) error { return nil },
			})
			if err != nil {
				t.Fatal(err)
			}
			go func() { ended <- w.Run(ctx) }()
		}
		if busy {
			go feedAll(ctx, t, server, leases)
		}
		<-time.After(6 * failover)
		const span = time.Minute
		reads0, writes0 := units(t, server)
		<-time.After(span)
		reads1, writes1 := units(t, server)
		reads, writes = (reads1-reads0)/span.Seconds(), (writes1-writes0)/span.Seconds()
		stop()
		for range workers {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
	})
	return writes, reads
}

// feedAll puts ten records a shard each five seconds, and three in a large stream: units depend on
// the checkpoints, of which a shard with a record has one in that time.
func feedAll(ctx context.Context, t *testing.T, server *runneltest.Server, shards int) {
	each := 10
	if shards > 1000 {
		each = 3
	}
	for n := 0; ctx.Err() == nil; {
		in := &kinesis.PutRecordsInput{StreamName: aws.String("orders")}
		for range 500 {
			in.Records = append(in.Records, types.PutRecordsRequestEntry{
				Data: []byte("x"), PartitionKey: aws.String(fmt.Sprint(n)),
			})
			n++
		}
		if _, err := server.Kinesis().PutRecords(ctx, in); err != nil && ctx.Err() == nil {
			t.Error(err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(5 * time.Second * 500 / time.Duration(each*shards)):
		}
	}
}

// units returns the units that GET /metrics shows.
func units(t *testing.T, server *runneltest.Server) (read, write float64) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.Endpoint()+"/metrics",
		nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := server.AWSConfig().HTTPClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), "} ")
		if !strings.HasPrefix(name, "runnel_dynamo_units_total{") {
			continue
		}
		var n float64
		if _, err := fmt.Sscan(value, &n); err != nil {
			t.Fatalf("%s: %v", lines.Text(), err)
		}
		if strings.Contains(name, `kind="read"`) {
			read += n
		} else {
			write += n
		}
	}
	return read, write
}
