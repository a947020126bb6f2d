package deploy_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	cwtypes "github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/runnel-stream/runnel/consumer"
	"github.com/runnel-stream/runnel/internal/metricspage"
	"github.com/runnel-stream/runnel/internal/retry"
	"github.com/runnel-stream/runnel/internal/workermetrics"
	"github.com/runnel-stream/runnel/keyspace"
	"github.com/runnel-stream/runnel/lease"
	"github.com/runnel-stream/runnel/runneltest"
)

const (
	app, stream = "orders-app", "orders"
	scrapeEvery = 30 * time.Second
	feedEvery   = 4 // seconds
)

// fleet is a fleet of workers on a real server, in virtual time, which is watched as an operator's
// would be: Prometheus scrapes the workers' pages, and CloudWatch gets their metrics.
type fleet struct {
	*testing.T
	server  *runneltest.Server
	workers []*member
	began   time.Time
	scrapes int
	scraped map[string][]*float64 // the values of each series, one for each scrape; nil for none

	mu   sync.Mutex
	data []cwtypes.MetricDatum // that CloudWatch got
}

type member struct {
	*consumer.Worker
	page *metricspage.Page
	stop func()
	end  chan error
	up   bool
}

func newFleet(t *testing.T, shards int) *fleet {
	return &fleet{
		T: t, began: time.Now(), scraped: map[string][]*float64{},
		server: runneltest.NewServer(t, runneltest.InMemory(), runneltest.WithStream(stream, shards)),
	}
}

// PutMetricData keeps the data that the server takes, as AWS would.
func (f *fleet) PutMetricData(
	ctx context.Context, in *cloudwatch.PutMetricDataInput, o ...func(*cloudwatch.Options),
) (*cloudwatch.PutMetricDataOutput, error) {
	out, err := cloudwatch.NewFromConfig(f.server.AWSConfig()).PutMetricData(ctx, in, o...)
	if err == nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.data = append(f.data, in.MetricData...)
	}
	return out, err
}

// published returns the data that CloudWatch got.
func (f *fleet) published() []cwtypes.MetricDatum {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.data)
}

// start starts a worker with a handler that does nothing, unless change says otherwise.
func (f *fleet) start(change ...func(*consumer.Config)) *member {
	f.Helper()
	cfg := consumer.Config{
		Stream: stream, App: app, WorkerID: fmt.Sprintf("w%d", len(f.workers)+1),
		Kinesis: f.server.Kinesis(), DynamoDB: f.server.DynamoDB(), PollInterval: 2 * time.Second,
		Handler:    func(context.Context, *consumer.Batch) error { return nil },
		CloudWatch: &consumer.CloudWatch{API: f, Namespace: "Orders"},
		Logger:     slog.New(slog.DiscardHandler),
	}
	for _, c := range change {
		c(&cfg)
	}
	w, err := consumer.New(cfg)
	if err != nil {
		f.Fatal(err)
	}
	ctx, stop := context.WithCancel(f.Context())
	m := &member{
		Worker: w, page: metricspage.New(), stop: stop, end: make(chan error, 1), up: true,
	}
	workermetrics.Add(m.page, func() (consumer.Status, bool) { return w.Status(), true })
	f.workers = append(f.workers, m)
	go func() { m.end <- w.Run(ctx) }()
	return m
}

// down stops a worker, and its page.
func (f *fleet) down(m *member) {
	m.stop()
	if err := <-m.end; err != nil {
		f.Error(err)
	}
	m.up = false
}

func (f *fleet) close() {
	for _, m := range f.workers {
		if m.up {
			f.down(m)
		}
	}
}

// pass lets time pass, and scrapes the pages meanwhile.
func (f *fleet) pass(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); {
		<-time.After(scrapeEvery)
		f.scrape()
	}
}

func (f *fleet) scrape() {
	for i, m := range f.workers {
		if !m.up {
			continue
		}
		answer := httptest.NewRecorder()
		m.page.ServeHTTP(answer, httptest.NewRequestWithContext(
			f.Context(), http.MethodGet, "/metrics", nil))
		all, err := metricspage.Read(answer.Body)
		if err != nil {
			f.Fatal(err)
		}
		for _, s := range all {
			id := seriesOf(s, fmt.Sprintf("w%d", i+1))
			values := f.scraped[id]
			for len(values) < f.scrapes {
				values = append(values, nil)
			}
			f.scraped[id] = append(values, &s.Value)
		}
	}
	f.scrapes++
}

// feed puts so many bytes a second into the shards, in a record each for some seconds, until the
// returned function is called.
func (f *fleet) feed(sizes ...int) (calm func()) {
	ctx, calm := context.WithCancel(f.Context())
	ranges := keyspace.Uniform(len(sizes))
	go func() {
		for ; ctx.Err() == nil; _ = retry.Wait(ctx, feedEvery*time.Second) {
			in := &kinesis.PutRecordsInput{StreamName: aws.String(stream)}
			for i, size := range sizes {
				in.Records = append(in.Records, types.PutRecordsRequestEntry{
					Data: bytes.Repeat([]byte("x"), feedEvery*size), PartitionKey: aws.String("k"),
					ExplicitHashKey: aws.String(ranges[i].Start.String()),
				})
			}
			if _, err := f.server.Kinesis().PutRecords(ctx, in); err != nil && ctx.Err() == nil {
				f.Error(err)
			}
		}
	}()
	return calm
}

// denied is a DynamoDB client of a role that loses the right to create items.
type denied struct {
	lease.DynamoDBAPI
	now *atomic.Bool
}

func (d denied) PutItem(
	ctx context.Context, in *dynamodb.PutItemInput, o ...func(*dynamodb.Options),
) (*dynamodb.PutItemOutput, error) {
	if d.now.Load() {
		return nil, errors.New("AccessDeniedException: no PutItem for this role")
	}
	return d.DynamoDBAPI.PutItem(ctx, in, o...)
}

// deleteLease deletes a lease that has no owner.
func (f *fleet) deleteLease() {
	f.Helper()
	table, err := lease.Find(f.Context(), lease.Config{DynamoDB: f.server.DynamoDB(), Table: app})
	if err != nil {
		f.Fatal(err)
	}
	leases, _, err := table.List(f.Context())
	if err != nil {
		f.Fatal(err)
	}
	for _, l := range leases {
		if l.Owner == "" {
			if err := table.Delete(f.Context(), l); err != nil {
				f.Fatal(err)
			}
			return
		}
	}
	f.Fatal("each lease has an owner")
}
