package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"go.uber.org/goleak"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/consumer"
	"github.com/runnel-stream/runnel/internal/seam"
	"github.com/runnel-stream/runnel/lease"
	"github.com/runnel-stream/runnel/lease/leasetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// soak returns the factor for the size of random tests.
func soak() int {
	if n, err := strconv.Atoi(os.Getenv("RUNNEL_SOAK")); err == nil && n > 0 {
		return n
	}
	return 1
}

const failover = 10 * time.Second

// fleet is a stream, a lease table and workers, in a bubble of virtual time, and the checks
// that hold for every handler.
type fleet struct {
	*testing.T
	stream *fakeStream
	table  *leasetest.Memory

	mu      sync.Mutex
	workers map[string]*member
	seen    map[runnel.ShardID][]string // sequence numbers, first deliveries, in order
	counts  map[string]int              // deliveries by sequence number
	again   int                         // deliveries but the first
	events  []consumer.Event
	group   sync.WaitGroup
}

type member struct {
	*consumer.Worker
	link *link
	stop func() // hands its work over
	kill func() // as a crash would
	err  chan error
}

func newFleet(t *testing.T, shards int) *fleet {
	return &fleet{
		T: t, stream: newStream(shards), table: &leasetest.Memory{PageSize: 3},
		workers: map[string]*member{},
		seen:    map[runnel.ShardID][]string{}, counts: map[string]int{},
	}
}

// config returns the configuration of a worker of the fleet unless a test changes it.
func (f *fleet) config(id string, l *link) consumer.Config {
	level := slog.LevelError
	if testing.Verbose() && os.Getenv("RUNNEL_LOG") != "" {
		level = slog.LevelDebug
	}
	return consumer.Config{
		Stream: f.stream.name, App: "orders-app", WorkerID: id, Failover: failover,
		Kinesis: f.stream, DynamoDB: l, Handler: f.handle, OnEvent: f.observe,
		Logger: slog.New(slog.NewTextHandler(f.Output(), &slog.HandlerOptions{Level: level})),
	}
}

// start runs a worker until it is stopped, killed, or the test ends.
func (f *fleet) start(id string, change ...func(*consumer.Config)) *member {
	f.Helper()
	m := &member{link: &link{DynamoDBAPI: f.table}, err: make(chan error, 1)}
	cfg := f.config(id, m.link)
	for _, c := range change {
		c(&cfg)
	}
	var err error
	if m.Worker, err = consumer.New(cfg); err != nil {
		f.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(f.Context())
	m.stop = func() { cancel(nil) }
	m.kill = func() { cancel(seam.ErrKilled) }
	f.mu.Lock()
	f.workers[id] = m
	f.mu.Unlock()
	f.group.Go(func() { m.err <- m.Run(ctx) })
	return m
}

// close stops all workers and waits for them.
func (f *fleet) close() {
	for _, m := range f.workers {
		m.stop()
	}
	f.group.Wait()
}

func (f *fleet) observe(e consumer.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.events = append(f.events, e)
}

func (f *fleet) happened(kind consumer.EventKind) []consumer.Event {
	f.mu.Lock()
	defer f.mu.Unlock()
	var found []consumer.Event
	for _, e := range f.events {
		if e.Kind == kind {
			found = append(found, e)
		}
	}
	return found
}

func (f *fleet) handle(_ context.Context, b *consumer.Batch) error {
	f.record(b.Records)
	return nil
}

// record checks a delivery: first deliveries are in order, without a gap, and after the
// parents' last ones.
func (f *fleet) record(records []runnel.Record) {
	f.mu.Lock()
	defer f.mu.Unlock()
	shard := records[0].ShardID
	f.stream.mu.Lock()
	defer f.stream.mu.Unlock()
	all := f.stream.shards[slices.IndexFunc(f.stream.shards, func(s *fakeShard) bool {
		return s.id == shard
	})]
	for _, parent := range all.parents {
		i := slices.IndexFunc(f.stream.shards, func(s *fakeShard) bool { return s.id == parent })
		if p := f.stream.shards[i]; len(f.seen[parent]) < len(p.records) {
			f.Errorf("%s was delivered when %d of %d records of its parent %s were",
				shard, len(f.seen[parent]), len(p.records), parent)
		}
	}
	for _, r := range records {
		sequence := string(r.Position.Sequence)
		f.counts[sequence]++
		if f.counts[sequence] > 1 {
			f.again++
			continue
		}
		next := len(f.seen[shard])
		if next >= len(all.records) || *all.records[next].SequenceNumber != sequence {
			f.Errorf("%s: %s was delivered as number %d", shard, sequence, next)
			return
		}
		f.seen[shard] = append(f.seen[shard], sequence)
	}
}

// delivered counts the records delivered at least once, and the repetitions.
func (f *fleet) delivered() (records, again int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.counts), f.again
}

// await waits until the condition holds, and fails after limit.
func (f *fleet) await(limit time.Duration, what string, holds func() bool) time.Duration {
	f.Helper()
	began := time.Now()
	for !holds() {
		if time.Since(began) > limit {
			f.dump()
			f.Fatalf("not within %s: %s", limit, what)
		}
		<-time.After(10 * time.Millisecond)
		synctest.Wait()
	}
	return time.Since(began)
}

func (f *fleet) dump() {
	for _, l := range f.leases() {
		f.Logf("%+v", l)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range f.events {
		if e.Kind != consumer.EventDelivered {
			f.Logf("%s %s %s %s other=%s %s %v", e.Time.Format("15:04:05.000"), e.Worker, e.Kind,
				e.ShardID, e.Other, e.Position, e.Err)
		}
	}
}

func (f *fleet) leaseTable() *lease.Table {
	f.stream.mu.Lock()
	defer f.stream.mu.Unlock()
	t, err := lease.New(lease.Config{
		DynamoDB: f.table, Table: "orders-app",
		Stream: lease.Stream{Name: f.stream.name, Created: f.stream.created},
	})
	if err != nil {
		f.Fatal(err)
	}
	return t
}

func (f *fleet) leases() []lease.Lease {
	leases, skipped, err := f.leaseTable().List(f.Context())
	if err != nil || len(skipped) > 0 {
		return nil
	}
	return leases
}

// loads returns how many unfinished leases each owner has.
func (f *fleet) loads() map[string]int {
	loads := map[string]int{}
	for _, l := range f.leases() {
		if !l.Ended() {
			loads[l.Owner]++
		}
	}
	return loads
}

func (f *fleet) spread() []int { return slices.Sorted(maps.Values(f.loads())) }

// link is one worker's connection to the lease table.
type link struct {
	lease.DynamoDBAPI
	mu sync.Mutex
	// before and after may fail a call, or its answer.
	before, after func(ctx context.Context, op string) error
}

var errCut = errors.New("the network is down")

// cut makes the table unreachable, by connections that hang, until the returned function.
func (l *link) cut() (mend func()) {
	mended := make(chan struct{})
	l.mu.Lock()
	l.before = func(ctx context.Context, _ string) error {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-mended:
			return nil
		}
	}
	l.mu.Unlock()
	return func() { close(mended) }
}

func (l *link) run(ctx context.Context, op string, call func() error) error {
	l.mu.Lock()
	before, after := l.before, l.after
	l.mu.Unlock()
	if before != nil {
		if err := before(ctx, op); err != nil {
			return err
		}
	}
	err := call()
	if after != nil {
		if lost := after(ctx, op); lost != nil {
			return lost
		}
	}
	return err
}

func (l *link) PutItem(
	ctx context.Context, in *dynamodb.PutItemInput, o ...func(*dynamodb.Options),
) (out *dynamodb.PutItemOutput, err error) {
	err = l.run(ctx, "PutItem", func() (err error) {
		out, err = l.DynamoDBAPI.PutItem(ctx, in, o...)
		return err
	})
	return out, err
}

func (l *link) GetItem(
	ctx context.Context, in *dynamodb.GetItemInput, o ...func(*dynamodb.Options),
) (out *dynamodb.GetItemOutput, err error) {
	err = l.run(ctx, "GetItem", func() (err error) {
		out, err = l.DynamoDBAPI.GetItem(ctx, in, o...)
		return err
	})
	return out, err
}

func (l *link) UpdateItem(
	ctx context.Context, in *dynamodb.UpdateItemInput, o ...func(*dynamodb.Options),
) (out *dynamodb.UpdateItemOutput, err error) {
	err = l.run(ctx, "UpdateItem", func() (err error) {
		out, err = l.DynamoDBAPI.UpdateItem(ctx, in, o...)
		return err
	})
	return out, err
}

func (l *link) Scan(
	ctx context.Context, in *dynamodb.ScanInput, o ...func(*dynamodb.Options),
) (out *dynamodb.ScanOutput, err error) {
	err = l.run(ctx, "Scan", func() (err error) {
		out, err = l.DynamoDBAPI.Scan(ctx, in, o...)
		return err
	})
	return out, err
}

func (l *link) Query(
	ctx context.Context, in *dynamodb.QueryInput, o ...func(*dynamodb.Options),
) (out *dynamodb.QueryOutput, err error) {
	err = l.run(ctx, "Query", func() (err error) {
		out, err = l.DynamoDBAPI.Query(ctx, in, o...)
		return err
	})
	return out, err
}

// keys returns n partition keys.
func keys(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("key-%d", i)
	}
	return out
}

func bubble(t *testing.T, shards int, run func(*fleet)) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, shards)
		defer f.close()
		run(f)
	})
}
