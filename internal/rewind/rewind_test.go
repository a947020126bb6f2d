package rewind_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/consumer"
	"github.com/runnel-stream/runnel/internal/rewind"
	"github.com/runnel-stream/runnel/internal/shardmap"
	"github.com/runnel-stream/runnel/lease"
	"github.com/runnel-stream/runnel/producer"
	"github.com/runnel-stream/runnel/runneltest"
)

const (
	app      = "readers"
	failover = 10 * time.Second
)

// history is a stream with a past, and an application that has read some of it.
type history struct {
	*testing.T
	server *runneltest.Server
	put    []string // the data in the order of their puts
	at     []time.Time
	live   bool // workers run: the pauses are short
}

// bubble makes a stream in virtual time: two shards, records with pauses of up to an hour, single
// and aggregated, a split and a merge.
func bubble(t *testing.T, seed uint64, run func(*history)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		h := &history{T: t, server: runneltest.NewServer(t,
			runneltest.InMemory(), runneltest.WithStream("orders", 2))}
		random := rand.New(rand.NewPCG(seed, 0))
		h.some(random, 20)
		h.reshard("split")
		h.some(random, 20)
		h.reshard("merge")
		h.some(random, 20)
		run(h)
	})
}

// some puts n records or aggregates.
func (h *history) some(random *rand.Rand, n int) {
	h.Helper()
	p, err := producer.New(h.Context(), producer.Config{
		Stream: "orders", Kinesis: h.server.Kinesis(), Reader: h.server.Kinesis(),
	})
	if err != nil {
		h.Fatal(err)
	}
	for range n {
		key := fmt.Sprint(random.IntN(8))
		for range 1 + 3*random.IntN(2) { // folded into one Kinesis record
			data := fmt.Sprint(len(h.put))
			h.put, h.at = append(h.put, data), append(h.at, time.Now())
			_, err := p.Put(h.Context(), runnel.Record{PartitionKey: key, Data: []byte(data)})
			if err != nil {
				h.Fatal(err)
			}
		}
		if err := p.Flush(h.Context()); err != nil {
			h.Fatal(err)
		}
		pauses := []time.Duration{time.Millisecond, time.Second, time.Minute, time.Hour / 2}
		if h.live {
			pauses = pauses[:2]
		}
		<-time.After(pauses[random.IntN(len(pauses))])
	}
	if err := p.Close(h.Context()); err != nil {
		h.Fatal(err)
	}
}

func (h *history) shards() []runnel.Shard {
	h.Helper()
	shards, err := shardmap.List(h.Context(), h.server.Kinesis(), "orders", nil)
	if err != nil {
		h.Fatal(err)
	}
	return shards
}

// reshard splits the first open shard, or merges the first two.
func (h *history) reshard(how string) {
	h.Helper()
	open := slices.DeleteFunc(h.shards(), func(s runnel.Shard) bool { return !s.Open() })
	slices.SortFunc(open, func(a, b runnel.Shard) int { return a.Range.Start.Compare(b.Range.Start) })
	var err error
	if how == "split" {
		middle := open[0].Range.Middle()
		_, err = h.server.Kinesis().SplitShard(h.Context(), &kinesis.SplitShardInput{
			StreamName: aws.String("orders"), ShardToSplit: aws.String(string(open[0].ID)),
			NewStartingHashKey: aws.String(middle.String()),
		})
	} else {
		_, err = h.server.Kinesis().MergeShards(h.Context(), &kinesis.MergeShardsInput{
			StreamName: aws.String("orders"), ShardToMerge: aws.String(string(open[0].ID)),
			AdjacentShardToMerge: aws.String(string(open[1].ID)),
		})
	}
	if err != nil {
		h.Fatal(err)
	}
	<-time.After(time.Minute)
}

// read runs a worker of the application until it has read all, and returns the data.
func (h *history) read(change ...func(*consumer.Config)) []string {
	h.Helper()
	var mu sync.Mutex
	var got []string
	cfg := consumer.Config{
		Stream: "orders", App: app, WorkerID: "w1", Once: true, Failover: failover,
		Kinesis: h.server.Kinesis(), DynamoDB: h.server.DynamoDB(),
		Handler: func(_ context.Context, b *consumer.Batch) error {
			mu.Lock()
			defer mu.Unlock()
			for _, r := range b.Records {
				got = append(got, string(r.Data))
			}
			return nil
		},
	}
	for _, c := range change {
		c(&cfg)
	}
	w, err := consumer.New(cfg)
	if err != nil {
		h.Fatal(err)
	}
	if err := w.Run(h.Context()); err != nil {
		h.Fatal(err)
	}
	return got
}

// table opens the lease table by a client.
func (h *history) table(api lease.DynamoDBAPI) (*lease.Table, lease.Binding) {
	h.Helper()
	found, err := lease.Find(h.Context(), lease.Config{DynamoDB: api, Table: app})
	if err != nil {
		h.Fatal(err)
	}
	bound, err := found.Bind(h.Context(), runnel.FromOldest())
	if err != nil {
		h.Fatal(err)
	}
	return found, bound
}

// reset resets the application, by a client of the table.
func (h *history) reset(api lease.DynamoDBAPI, to runnel.From) error {
	h.Helper()
	table, bound := h.table(api)
	if held, err := rewind.Holders(h.Context(), table, failover); err != nil || len(held) > 0 {
		h.Fatalf("held by %v, %v", held, err)
	}
	leases, _, err := table.List(h.Context())
	if err != nil {
		h.Fatal(err)
	}
	goals, err := rewind.Find(h.Context(),
		rewind.Stream{Kinesis: h.server.Kinesis(), Name: "orders", Now: time.Now()}, to, h.shards())
	if err != nil {
		h.Fatal(err)
	}
	return rewind.Apply(h.Context(), table, bound.Origin, "reset-"+to.String(),
		rewind.Plan(goals, leases))
}

// since returns the data that arrived at a time or later.
func (h *history) since(to runnel.From) []string {
	switch to.Word() {
	case runnel.TrimHorizon:
		return h.put
	case runnel.Latest:
		return nil
	}
	i := slices.IndexFunc(h.at, func(at time.Time) bool { return !at.Before(to.Time()) })
	if i < 0 {
		return nil
	}
	return h.put[i:]
}

// wantFrom reads to the tip, and wants the records since a time.
func (h *history) wantFrom(to runnel.From, when string) {
	h.Helper()
	got := h.read()
	slices.Sort(got)
	want := slices.Clone(h.since(to))
	slices.Sort(want)
	if !slices.Equal(got, want) {
		h.Errorf("%s, from %s: got %d records %v, want %d %v", when, to, len(got), got, len(want),
			want)
	}
}

// targets are times at, before and after records.
func (h *history) targets() []runnel.From {
	all := []runnel.From{runnel.FromOldest(), runnel.FromLatest()}
	for i := 0; i < len(h.at); i += 9 {
		all = append(all, runnel.FromTime(h.at[i]), runnel.FromTime(h.at[i].Add(time.Millisecond)))
	}
	return append(all, runnel.FromTime(h.at[0].Add(-time.Hour)), runnel.FromTime(time.Now()))
}

// After a reset the workers deliver exactly the records from the time on, from any position
// before.
func TestReset(t *testing.T) {
	for seed := range uint64(3) {
		bubble(t, seed, func(h *history) {
			h.wantFrom(runnel.FromOldest(), "at first")
			for _, to := range h.targets() {
				if err := h.reset(h.server.DynamoDB(), to); err != nil {
					h.Fatal(err)
				}
				h.noLatest()
				h.wantFrom(to, "after a reset")
			}
		})
	}
}

// noLatest checks that no row says LATEST or a time, or has an owner. The state at a shard's end is
// true after a reset, too.
func (h *history) noLatest() {
	h.Helper()
	table, _ := h.table(h.server.DynamoDB())
	leases, _, err := table.List(h.Context())
	if err != nil {
		h.Fatal(err)
	}
	for _, l := range leases {
		word := l.Checkpoint.Sequence
		if word == runnel.Latest || word == runnel.AtTimestamp || !l.From.IsZero() ||
			l.Owner != "" || !l.Ended() && l.StateAt != runnel.Start() {
			h.Errorf("after a reset: %.300s", fmt.Sprintf("%+v", l))
		}
	}
}

// An application that began with the latest record, or at a time, has no leases of older shards.
func TestResetOfAYoungApplication(t *testing.T) {
	for _, from := range []string{"latest", "time"} {
		bubble(t, 7, func(h *history) {
			origin := runnel.FromLatest()
			if from == "time" {
				origin = runnel.FromTime(h.at[len(h.at)/2])
			}
			h.read(func(c *consumer.Config) { c.From = origin })
			for _, to := range h.targets() {
				if err := h.reset(h.server.DynamoDB(), to); err != nil {
					h.Fatal(err)
				}
				h.wantFrom(to, "an application from "+from+" on")
			}
		})
	}
}

// A reset that is cut off at any write is completed by the next one.
func TestResetIsCutOff(t *testing.T) {
	bubble(t, 11, func(h *history) {
		h.read()
		to := runnel.FromTime(h.at[len(h.at)/3])
		for n := 0; ; n++ {
			cut := &cutOff{DynamoDBAPI: h.server.DynamoDB(), left: n}
			err := h.reset(cut, to)
			if err == nil {
				break
			}
			if !errors.Is(err, errCutOff) {
				h.Fatalf("cut off after %d writes: %v", n, err)
			}
			if err := h.reset(h.server.DynamoDB(), to); err != nil {
				h.Fatalf("after a cut after %d writes: %v", n, err)
			}
			h.noLatest()
			h.wantFrom(to, fmt.Sprintf("cut off after %d writes", n))
		}
	})
}

func (c *cutOff) DeleteItem(
	ctx context.Context, in *dynamodb.DeleteItemInput, o ...func(*dynamodb.Options),
) (*dynamodb.DeleteItemOutput, error) {
	if err := c.write(); err != nil {
		return nil, err
	}
	return c.DynamoDBAPI.DeleteItem(ctx, in, o...)
}

var errCutOff = errors.New("killed")

// cutOff fails all writes but the first ones.
type cutOff struct {
	lease.DynamoDBAPI
	mu   sync.Mutex
	left int
}

func (c *cutOff) write() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left--; c.left < 0 {
		return errCutOff
	}
	return nil
}

func (c *cutOff) UpdateItem(
	ctx context.Context, in *dynamodb.UpdateItemInput, o ...func(*dynamodb.Options),
) (*dynamodb.UpdateItemOutput, error) {
	if err := c.write(); err != nil {
		return nil, err
	}
	return c.DynamoDBAPI.UpdateItem(ctx, in, o...)
}

func (c *cutOff) PutItem(
	ctx context.Context, in *dynamodb.PutItemInput, o ...func(*dynamodb.Options),
) (*dynamodb.PutItemOutput, error) {
	if err := c.write(); err != nil {
		return nil, err
	}
	return c.DynamoDBAPI.PutItem(ctx, in, o...)
}

// Live workers are named, with their shards, also one without; one that was killed is not. A worker
// that takes a lease during the reset ends it, and nothing has changed.
func TestResetBesideWorkers(t *testing.T) {
	bubble(t, 13, func(h *history) {
		ctx, stop := context.WithCancel(h.Context())
		done := make(chan error, 3)
		for _, id := range []string{"one", "two", "idle"} { // there are two shards
			w, err := consumer.New(consumer.Config{
				Stream: "orders", App: app, WorkerID: id, Failover: failover,
				Kinesis: h.server.Kinesis(), DynamoDB: h.server.DynamoDB(),
				Handler: func(context.Context, *consumer.Batch) error { return nil },
			})
			if err != nil {
				h.Fatal(err)
			}
			go func() { done <- w.Run(ctx) }()
			<-time.After(2 * failover)
		}
		table, bound := h.table(h.server.DynamoDB())
		held, err := rewind.Holders(h.Context(), table, failover)
		if err != nil || len(held["one"]) != 1 || len(held["two"]) != 1 || len(held) != 3 {
			h.Errorf("held by %v, %v", held, err)
		}
		stop()
		for range 3 {
			if err := <-done; err != nil {
				h.Fatal(err)
			}
		}
		leases, _, err := table.List(h.Context())
		if err != nil {
			h.Fatal(err)
		}
		i := slices.IndexFunc(leases, func(l lease.Lease) bool { return !l.Ended() })
		if _, err := table.Take(h.Context(), leases[i], lease.Claim{Worker: "new"}); err != nil {
			h.Fatal(err)
		}
		goals, err := rewind.Find(h.Context(),
			rewind.Stream{Kinesis: h.server.Kinesis(), Name: "orders", Now: time.Now()}, runnel.FromOldest(),
			h.shards())
		if err != nil {
			h.Fatal(err)
		}
		err = rewind.Apply(h.Context(), table, bound.Origin, "reset", rewind.Plan(goals, leases))
		if !errors.Is(err, lease.ErrLeaseLost) || !strings.Contains(err.Error(), "new holds it") {
			h.Errorf("a worker has taken a lease: %v", err)
		}
		after, _, err := table.List(h.Context())
		if err != nil {
			h.Fatal(err)
		}
		for i, l := range after {
			if l.Checkpoint != leases[i].Checkpoint || l.Owner != "" && l.Owner != "new" {
				h.Errorf("it was %+v, and is %+v", leases[i], l)
			}
		}
	})
}

// passed is a client that refuses to read from a time after now, as AWS does.
type passed struct {
	*kinesis.Client
	now time.Time
}

func (p passed) GetShardIterator(
	ctx context.Context, in *kinesis.GetShardIteratorInput, o ...func(*kinesis.Options),
) (*kinesis.GetShardIteratorOutput, error) {
	if aws.ToTime(in.Timestamp).After(p.now) {
		return nil, &types.InvalidArgumentException{Message: aws.String("the time is in the future")}
	}
	return p.Client.GetShardIterator(ctx, in, o...)
}

// The shard has no record, or its last one is old, or all are gone.
func TestGoals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := runneltest.NewServer(t, runneltest.InMemory(), runneltest.WithStream("s", 1))
		now := time.Now()
		find := func(to runnel.From) rewind.Goal {
			t.Helper()
			shards, err := shardmap.List(t.Context(), server.Kinesis(), "s", nil)
			if err != nil {
				t.Fatal(err)
			}
			goals, err := rewind.Find(t.Context(),
				rewind.Stream{Kinesis: passed{server.Kinesis(), now}, Name: "s", Now: now}, to, shards)
			if err != nil {
				t.Fatal(err)
			}
			return goals[0]
		}
		<-time.After(time.Minute)
		now = time.Now()
		for _, to := range []runnel.From{
			runnel.FromOldest(), runnel.FromLatest(), runnel.FromTime(time.Now()),
		} {
			if got := find(to); got.At != runnel.Start() {
				t.Errorf("no record, from %s: %+v", to, got)
			}
		}
		var last runnel.SequenceNumber
		for n := range 3 { // a burst, long ago
			out, err := server.Kinesis().PutRecords(t.Context(), &kinesis.PutRecordsInput{
				StreamName: aws.String("s"), Records: slices.Repeat([]types.PutRecordsRequestEntry{{
					Data: []byte{byte(n)}, PartitionKey: aws.String("k"),
				}}, 500),
			})
			if err != nil {
				t.Fatal(err)
			}
			last = runnel.SequenceNumber(*out.Records[499].SequenceNumber)
			<-time.After(time.Second)
		}
		now = time.Now()
		<-time.After(time.Hour) // this machine's clock is ahead of the stream's
		if got := find(runnel.FromLatest()); got.At != (runnel.Position{Sequence: last}) {
			t.Errorf("with a clock ahead: %+v, want %s", got, last)
		}
		<-time.After(20 * time.Hour)
		now = time.Now()
		for _, to := range []runnel.From{runnel.FromLatest(), runnel.FromTime(time.Now())} {
			if got := find(to); got.At != (runnel.Position{Sequence: last}) {
				t.Errorf("from %s: %+v, want %s", to, got, last)
			}
		}
		<-time.After(5 * time.Hour) // beyond the retention period
		now = time.Now()
		for _, to := range []runnel.From{runnel.FromLatest(), runnel.FromTime(time.Now())} {
			if got := find(to); got.At != runnel.Start() {
				t.Errorf("all records are gone, from %s: %+v", to, got)
			}
		}
	})
}

// The newest record is found while a producer never pauses.
func TestLatestBesideAProducer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := runneltest.NewServer(t, runneltest.InMemory(), runneltest.WithStream("s", 1))
		put := func() {
			_, err := server.Kinesis().PutRecord(t.Context(), &kinesis.PutRecordInput{
				StreamName: aws.String("s"), PartitionKey: aws.String("k"), Data: []byte("x"),
			})
			if err != nil {
				t.Error(err)
			}
		}
		ctx, stop := context.WithCancel(t.Context())
		var group sync.WaitGroup
		group.Go(func() {
			for ctx.Err() == nil {
				put()
				<-time.After(20 * time.Millisecond)
			}
		})
		<-time.After(time.Minute)
		shards, err := shardmap.List(t.Context(), server.Kinesis(), "s", nil)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		limited, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		goals, err := rewind.Find(limited,
			rewind.Stream{Kinesis: server.Kinesis(), Name: "s", Now: began}, runnel.FromLatest(), shards)
		if err != nil {
			t.Fatal(err)
		}
		if at := goals[0].Arrival; at.Before(began) || time.Since(began) > 10*time.Second {
			t.Errorf("found the record of %s from %s on, after %s", at, began, time.Since(began))
		}
		stop()
		group.Wait()
	})
}
