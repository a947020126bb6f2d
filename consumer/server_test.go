package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/consumer"
	"github.com/runnel-stream/runnel/internal/seam"
	"github.com/runnel-stream/runnel/keyspace"
	"github.com/runnel-stream/runnel/runneltest"
)

// turn is a lock that may be held over I/O in a bubble of virtual time: waiting for it does not
// stop the clock.
type turn chan struct{}

func (t turn) Lock()   { t <- struct{}{} }
func (t turn) Unlock() { <-t }

// ledger holds the records that were put, and checks the delivered ones.
type ledger struct {
	*testing.T
	server *runneltest.Server

	mu     turn
	put    map[runnel.ShardID][]runnel.SequenceNumber
	next   map[runnel.ShardID]int // first deliveries so far
	parent map[runnel.ShardID][]runnel.ShardID
	total  int
	again  int
	events []consumer.Event
}

func newLedger(t *testing.T, server *runneltest.Server) *ledger {
	return &ledger{
		T: t, server: server, mu: make(turn, 1), put: map[runnel.ShardID][]runnel.SequenceNumber{},
		next: map[runnel.ShardID]int{}, parent: map[runnel.ShardID][]runnel.ShardID{},
	}
}

// send puts n records, and notes the shard of each before it can be delivered: deliveries wait.
func (l *ledger) send(n int) {
	l.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	in := &kinesis.PutRecordsInput{StreamName: aws.String("orders")}
	for i := range n {
		in.Records = append(in.Records, types.PutRecordsRequestEntry{
			PartitionKey: aws.String(fmt.Sprint("key-", i)), Data: []byte("{}"),
		})
	}
	out, err := l.server.Kinesis().PutRecords(l.Context(), in)
	if err != nil {
		l.Fatal(err)
	}
	for _, r := range out.Records {
		id := runnel.ShardID(aws.ToString(r.ShardId))
		l.put[id] = append(l.put[id], runnel.SequenceNumber(aws.ToString(r.SequenceNumber)))
	}
	l.total += n
}

func (l *ledger) handle(_ context.Context, b *consumer.Batch) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, parent := range l.parent[b.ShardID] {
		if l.next[parent] < len(l.put[parent]) {
			l.Errorf("%s before the end of its parent %s", b.ShardID, parent)
		}
	}
	for _, r := range b.Records {
		i, known := slices.BinarySearchFunc(l.put[b.ShardID], r.Position.Sequence,
			runnel.SequenceNumber.Compare)
		switch {
		case !known || i > l.next[b.ShardID]:
			l.Errorf("%s: %s was delivered as number %d", b.ShardID, r.Position, l.next[b.ShardID])
		case i < l.next[b.ShardID]:
			l.again++
		default:
			l.next[b.ShardID]++
		}
	}
	return nil
}

func (l *ledger) observe(e consumer.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, e)
}

func (l *ledger) delivered() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, next := range l.next {
		n += next
	}
	return n
}

func (l *ledger) await(limit time.Duration) {
	l.Helper()
	began := time.Now()
	for l.delivered() < l.total {
		if time.Since(began) > limit {
			for _, e := range l.events {
				if e.Kind != consumer.EventDelivered {
					l.Logf("%s %s %s %s %s %v", e.Time.Format("15:04:05.000"), e.Worker, e.Kind,
						e.ShardID, e.Position, e.Err)
				}
			}
			l.Fatalf("%d of %d records within %s", l.delivered(), l.total, limit)
		}
		<-time.After(10 * time.Millisecond)
	}
}

// reshard splits the i-th open shard, or merges it with its neighbour, and waits until it is
// done.
func (l *ledger) reshard(i int, merge bool) {
	l.Helper()
	client, ctx := l.server.Kinesis(), l.Context()
	name := aws.String("orders")
	shards, err := client.ListShards(ctx, &kinesis.ListShardsInput{StreamName: name})
	if err != nil {
		l.Fatal(err)
	}
	var open []types.Shard
	for _, s := range shards.Shards {
		if s.SequenceNumberRange.EndingSequenceNumber == nil {
			open = append(open, s)
		}
	}
	slices.SortFunc(open, func(a, b types.Shard) int {
		return runnel.SequenceNumber(*a.HashKeyRange.StartingHashKey).Compare(
			runnel.SequenceNumber(*b.HashKeyRange.StartingHashKey))
	})
	s := open[i%len(open)]
	if merge && i%len(open)+1 < len(open) {
		_, err = client.MergeShards(ctx, &kinesis.MergeShardsInput{
			StreamName: name, ShardToMerge: s.ShardId,
			AdjacentShardToMerge: open[i%len(open)+1].ShardId,
		})
	} else {
		_, err = client.SplitShard(ctx, &kinesis.SplitShardInput{
			StreamName: name, ShardToSplit: s.ShardId, NewStartingHashKey: middle(s),
		})
	}
	if err != nil {
		l.Fatal(err)
	}
	for {
		d, err := client.DescribeStreamSummary(ctx,
			&kinesis.DescribeStreamSummaryInput{StreamName: name})
		if err != nil {
			l.Fatal(err)
		}
		if d.StreamDescriptionSummary.StreamStatus == types.StreamStatusActive {
			break
		}
		<-time.After(20 * time.Millisecond)
	}
	shards, err = client.ListShards(ctx, &kinesis.ListShardsInput{StreamName: name})
	if err != nil {
		l.Fatal(err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range shards.Shards {
		var parents []runnel.ShardID
		for _, p := range []*string{s.ParentShardId, s.AdjacentParentShardId} {
			if p != nil {
				parents = append(parents, runnel.ShardID(*p))
			}
		}
		l.parent[runnel.ShardID(*s.ShardId)] = parents
	}
}

func (l *ledger) worker(id string, change ...func(*consumer.Config)) *consumer.Worker {
	l.Helper()
	cfg := consumer.Config{
		Stream: "orders", App: "orders-app", WorkerID: id, Failover: 2 * time.Second,
		Kinesis: l.server.Kinesis(), DynamoDB: l.server.DynamoDB(),
		Handler: l.handle, OnEvent: l.observe,
	}
	for _, c := range change {
		c(&cfg)
	}
	w, err := consumer.New(cfg)
	if err != nil {
		l.Fatal(err)
	}
	return w
}

// A fleet on the real server, in virtual time: splits and merges, faults of the server, a
// worker that dies, the server killed and restarted.
func TestFleetOnServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := runneltest.NewServer(t, runneltest.InMemory(), runneltest.WithCrashes(1),
			runneltest.WithStream("orders", 4))
		l := newLedger(t, server)
		ctx, stop := context.WithCancel(t.Context())
		var group sync.WaitGroup
		run := func(id string) (kill func()) {
			w := l.worker(id)
			life, end := context.WithCancelCause(ctx)
			group.Go(func() {
				if err := w.Run(life); err != nil && !errors.Is(err, seam.ErrKilled) {
					t.Errorf("%s: %v", id, err)
				}
			})
			return func() { end(seam.ErrKilled) }
		}
		killFirst := run("w1")
		run("w2")
		run("w3")
		for i := range 60 {
			l.send(50)
			switch i % 10 {
			case 2:
				l.reshard(i, false)
			case 5:
				l.reshard(i, true)
			case 7:
				if err := server.SetFaults("seed=7 UpdateItem:lose-answer%5 GetRecords:error-500%5 " +
					"GetRecords:expire-iterator%5 Scan:throttle%5"); err != nil {
					t.Fatal(err)
				}
			case 9:
				if err := server.SetFaults(""); err != nil {
					t.Fatal(err)
				}
			}
			if i == 25 {
				killFirst()
			}
			if i == 40 {
				if err := server.Restart(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			<-time.After(300 * time.Millisecond)
		}
		l.await(time.Minute)
		t.Logf("%d records, %d again, faults %v", l.total, l.again, server.FaultCounts())
		stop()
		group.Wait()
	})
}

// Once on the real server, over a socket: the existing records are read, and the worker ends.
func TestOnceOnServer(t *testing.T) {
	server := runneltest.NewServer(t, runneltest.WithStream("orders", 3),
		runneltest.WithStreamDelay(-1))
	l := newLedger(t, server)
	l.send(400)
	l.reshard(0, false)
	l.send(400)
	l.reshard(1, true)
	l.send(400)
	if err := l.worker("w1", once).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := l.delivered(); n != l.total || l.again != 0 {
		t.Errorf("%d of %d records, %d again", n, l.total, l.again)
	}
}

// Begun at LATEST on the real server: no older record is delivered and no newer one missed. The
// server says its time in whole seconds.
func TestLatestOnServer(t *testing.T) {
	server := runneltest.NewServer(t, runneltest.WithStream("orders", 3))
	old := newLedger(t, server)
	old.send(100)
	<-time.After(1005 * time.Millisecond)
	l := newLedger(t, server)
	started := make(chan struct{})
	var begun sync.Once
	var shards int
	w := l.worker("w1", func(c *consumer.Config) {
		c.From = runnel.FromLatest()
		c.OnEvent = func(e consumer.Event) {
			if l.observe(e); e.Kind == consumer.EventShardStarted {
				l.mu.Lock()
				shards++
				ready := shards == 3
				l.mu.Unlock()
				if ready {
					begun.Do(func() { close(started) })
				}
			}
		}
	})
	done := make(chan error, 1)
	ctx, stop := context.WithCancel(t.Context())
	go func() { done <- w.Run(ctx) }()
	<-started
	l.send(100)
	l.await(10 * time.Second)
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// middle returns the hash key that splits a shard into halves.
func middle(s types.Shard) *string {
	low, err := keyspace.Parse(*s.HashKeyRange.StartingHashKey)
	if err != nil {
		panic(err)
	}
	high, err := keyspace.Parse(*s.HashKeyRange.EndingHashKey)
	if err != nil {
		panic(err)
	}
	return aws.String(keyspace.Range{Start: low, End: high}.Middle().String())
}
