package rollup

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/consumer"
	"github.com/runnel-stream/runnel/internal/counttest"
	"github.com/runnel-stream/runnel/lease"
	"github.com/runnel-stream/runnel/runneltest"
)

// away is a fleet of two workers on a stream of two shards, in virtual time, with a store of rows
// that can be away.
type away struct {
	*testing.T
	server  *runneltest.Server
	store   *memory
	workers sync.WaitGroup
	put     int              // records
	counts  counttest.Counts // of the workers
}

// start runs a worker until the test ends.
func (a *away) start(id string) {
	a.Helper()
	rows, err := OpenRows(a.Context(), RowsConfig{
		Definition: simDefinition, Store: a.store, App: "orders", Stream: "orders",
		Kinesis: a.server.Kinesis(), Leases: a.server.DynamoDB(),
	})
	if err != nil {
		a.Fatal(err)
	}
	w, err := consumer.New(consumer.Config{
		Stream: "orders", App: "orders", WorkerID: id, Handler: rows.Handle, Output: rows.Output(),
		Kinesis: a.counts.Reader(a.server.Kinesis()), DynamoDB: a.server.DynamoDB(),
		PollInterval: 5 * time.Second, Failover: 30 * time.Second, Logger: a.counts.Logger(),
	})
	if err != nil {
		a.Fatal(err)
	}
	a.workers.Go(func() {
		if err := w.Run(a.Context()); err != nil && !errors.Is(err, context.Canceled) {
			a.Error(err)
		}
	})
}

// feed puts eight records every 20 seconds, for a while.
func (a *away) feed(d time.Duration) {
	a.Helper()
	for start := time.Now(); time.Since(start) < d; <-time.After(20 * time.Second) {
		in := &kinesis.PutRecordsInput{StreamName: aws.String("orders")}
		for range awayPut {
			in.Records = append(in.Records, types.PutRecordsRequestEntry{
				PartitionKey: aws.String(fmt.Sprint(a.put)),
				Data:         fmt.Appendf(nil, `{"k": "key-%d", "v": %d}`, a.put%7, a.put),
			})
			a.put++
		}
		if _, err := a.server.Kinesis().PutRecords(a.Context(), in); err != nil {
			a.Fatal(err)
		}
	}
}

const awayPut = 8 // records of a put

// owners returns the owner of each shard, and how often it has changed.
func (a *away) owners() map[runnel.ShardID]string {
	a.Helper()
	stream, err := a.server.Kinesis().DescribeStreamSummary(a.Context(),
		&kinesis.DescribeStreamSummaryInput{StreamName: aws.String("orders")})
	if err != nil {
		a.Fatal(err)
	}
	table, err := lease.New(lease.Config{
		DynamoDB: a.server.DynamoDB(), Table: "orders", Stream: lease.Stream{
			Name: "orders", Created: *stream.StreamDescriptionSummary.StreamCreationTimestamp,
		},
	})
	if err != nil {
		a.Fatal(err)
	}
	leases, _, err := table.List(a.Context())
	if err != nil {
		a.Fatal(err)
	}
	owners := map[runnel.ShardID]string{}
	for _, l := range leases {
		owners[l.Key] = fmt.Sprint(l.Owner, " ", l.Hold)
	}
	return owners
}

// wantEach checks that each record counts once.
func (a *away) wantEach() {
	a.Helper()
	a.store.mu.Lock()
	defer a.store.mu.Unlock()
	for key := range 7 {
		var count, sum int
		for n := key; n < a.put; n += 7 {
			count, sum = count+1, sum+n
		}
		row := a.store.rows[fmt.Sprint("key-", key)]
		if len(row.Values) < 2 || row.Values[0].Int != int64(count) ||
			row.Values[1].Int != int64(sum) {
			a.Errorf("row %d is %v, want %d and %d", key, row.Values, count, sum)
		}
	}
}

// outage makes the store fail after a write that takes effect and has no answer.
func (a *away) outage() {
	a.store.mu.Lock()
	defer a.store.mu.Unlock()
	a.store.fail = func(outcome error) error {
		if a.store.failRead == nil && outcome == nil {
			a.store.failRead = errors.New("the store is away")
			return new(lostError)
		}
		return a.store.failRead // nil if two shards have met at a row: the outcome remains
	}
}

// back ends the outage.
func (a *away) back() {
	a.store.mu.Lock()
	defer a.store.mu.Unlock()
	a.store.failRead, a.store.fail = nil, nil
}

// TestStoreAwayForAnHour has the store away for an hour while records flow on. The workers keep
// their leases and read no further, with a line every 10 s for each shard. Then each record counts
// once.
func TestStoreAwayForAnHour(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := &away{T: t, store: newMemory(), server: runneltest.NewServer(t, runneltest.InMemory(),
			runneltest.WithStreamDelay(-1), runneltest.WithStream("orders", 2))}
		t.Cleanup(a.workers.Wait)
		a.start("w1")
		a.start("w2")
		a.feed(2 * time.Minute)
		a.wantEach()
		before := a.owners()
		a.counts.Reset()
		a.outage()
		for range 60 {
			a.feed(time.Minute)
			if now := a.owners(); !maps.Equal(now, before) {
				a.Fatalf("the leases were %v, and are %v", before, now)
			}
		}
		lines, read := a.counts.Lines.Load(), a.counts.Records.Load()
		if lines < 2*3600/60 || lines > 2*3600/10+10 || read == 0 || read > 4*awayPut {
			a.Errorf("%d lines, %d records were read", lines, read)
		}
		a.back()
		a.feed(5 * time.Minute)
		<-time.After(time.Minute)
		a.wantEach()
	})
}
