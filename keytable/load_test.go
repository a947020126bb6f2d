package keytable

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
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
	"github.com/runnel-stream/runnel/keyspace/allocate"
	"github.com/runnel-stream/runnel/producer"
	"github.com/runnel-stream/runnel/runneltest"
)

// event is a record of the load: the n-th of a name by a producer.
type event struct {
	Producer, Name string
	N              int
}

// verdict records the put records and judges the read ones, of all shards together.
type verdict struct {
	turn     chan struct{} // a lock that may be waited for in virtual time
	sent     map[event]int // by producer and name, with N 0
	got      map[event]int
	faults   []string
	upTo     map[runnel.ShardID]runnel.Position // delivered: a worker that takes over repeats
	byShard  map[event]runnel.ShardID           // of the last record
	switches int
}

func (v *verdict) lock() func() {
	v.turn <- struct{}{}
	return func() { <-v.turn }
}

func (v *verdict) take(b *consumer.Batch) {
	defer v.lock()()
	for _, r := range b.Records {
		if !v.upTo[b.ShardID].Less(r.Position) {
			continue
		}
		v.upTo[b.ShardID] = r.Position
		var e event
		if err := json.Unmarshal(r.Data, &e); err != nil {
			v.faults = append(v.faults, fmt.Sprintf("%q: %v", r.Data, err))
			continue
		}
		n := e.N
		if e.N = 0; n != v.got[e]+1 {
			v.faults = append(v.faults, fmt.Sprintf("%s of %s: number %d behind %d, in %s",
				e.Name, e.Producer, n, v.got[e], b.ShardID))
		}
		v.got[e] = max(v.got[e], n)
		if before, known := v.byShard[e]; known && before != b.ShardID {
			v.switches++
		}
		v.byShard[e] = b.ShardID
	}
}

// left returns how many records have not been read.
func (v *verdict) left() (sent, left int) {
	defer v.lock()()
	for e, n := range v.sent {
		sent += n
		left += n - v.got[e]
	}
	return sent, left
}

// load is producers that put, workers that read, and moves meanwhile.
type load struct {
	*testing.T
	server *runneltest.Server
	random *rand.Rand
	verdict
}

// put puts records of all names until stop is closed.
func (l *load) put(id string, seed uint64, stop <-chan struct{}) {
	table, err := Open(l.Context(), Config{
		DynamoDB: l.server.DynamoDB(), Table: "keys", Interval: 3 * time.Second, // late to know of moves
	})
	if err != nil {
		l.Error(err)
		return
	}
	session, err := table.Join(l.Context())
	if err != nil {
		l.Error(err)
		return
	}
	client := l.server.Kinesis()
	p, err := producer.New(l.Context(), producer.Config{
		Stream: "orders", Kinesis: client, Reader: client, Keys: session, MaxInFlight: 4,
		CallTimeout: 2 * time.Second, Logger: slog.New(slog.DiscardHandler),
		OnResult: func(r runnel.Record, result producer.Result) {
			if result.Err != nil {
				l.Errorf("%s: %v", r.Data, result.Err)
			}
		},
	})
	if err != nil {
		l.Error(err)
		return
	}
	random := rand.New(rand.NewPCG(seed, 1))
	counts := map[event]int{}
	var group sync.WaitGroup
	for i := range names {
		pauses := rand.New(rand.NewPCG(random.Uint64(), uint64(i)))
		name := fmt.Sprint("name-", i)
		group.Go(func() {
			for n := 1; ; n++ {
				select {
				case <-stop:
					defer l.lock()()
					counts[event{Producer: id, Name: name}] = n - 1
					return
				case <-time.After(time.Duration(pauses.IntN(800)) * time.Millisecond):
				}
				data, _ := json.Marshal(event{id, name, n})
				if err := p.PutFunc(l.Context(), runnel.Record{PartitionKey: name, Data: data}, nil); err != nil {
					l.Errorf("%s: %v", name, err)
					return
				}
			}
		})
	}
	group.Wait()
	if err := p.Close(l.Context()); err != nil {
		l.Error(err)
	}
	if err := session.Close(l.Context()); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		l.Error(err) // but that the delete had no answer: then the row expires
	}
	defer l.lock()()
	for e, n := range counts {
		l.sent[e] = n
	}
}

const names = 12

// read runs a worker that is slow in every other shard: there it is behind.
func (l *load) read(ctx context.Context) {
	w, err := consumer.New(consumer.Config{
		Stream: "orders", App: "app", Kinesis: l.server.Kinesis(), DynamoDB: l.server.DynamoDB(),
		PollInterval: 500 * time.Millisecond, Failover: 5 * time.Second,
		Handler: func(ctx context.Context, b *consumer.Batch) error {
			slow := time.Duration(b.ShardID[len(b.ShardID)-1]%2) * 8 * time.Second
			select {
			case <-time.After(slow):
			case <-ctx.Done():
				return ctx.Err()
			}
			l.take(b)
			return nil
		},
	})
	if err == nil {
		err = w.Run(ctx)
	}
	if err != nil {
		l.Error(err)
	}
}

// moves makes moves, some planned and some at random, with a split and a merge between them.
func (l *load) moves(ctx context.Context) (moved int) {
	table := open(l.T, l.server.DynamoDB())
	cfg := MoveConfig{Kinesis: l.server.Kinesis(), Stream: "orders", Apps: []string{"app"}}
	for round := range 4 {
		if err := table.Refresh(ctx); err != nil {
			l.Fatal(err)
		}
		plan := allocate.RebalanceScratch
		if round%2 == 0 {
			plan = l.scatter
		}
		moves, err := table.Plan(plan)
		if err != nil {
			l.Fatal(err)
		}
		resharded := make(chan struct{})
		go func() {
			defer close(resharded)
			<-time.After(time.Duration(l.random.IntN(3000)) * time.Millisecond)
			switch round {
			case 1, 2:
				l.split(ctx)
			case 3:
				l.merge(ctx)
			}
		}()
		if err := table.Move(ctx, cfg, moves); err != nil {
			l.Fatalf("round %d: %v", round, err)
		}
		moved += len(moves)
		<-resharded
	}
	return moved
}

// scatter is a plan that moves every other key anywhere.
func (l *load) scatter(_ allocate.Space, all []allocate.Rated) (moves []allocate.Move, _ error) {
	for _, r := range all {
		if l.random.IntN(2) == 0 {
			to := keyspace.Key{Hi: l.random.Uint64(), Lo: l.random.Uint64()}
			moves = append(moves, allocate.Move{From: r.Key, To: to, Rate: r.Rate})
		}
	}
	return moves, nil
}

func (l *load) open(ctx context.Context) (open []types.Shard) {
	out, err := l.server.Kinesis().ListShards(ctx, &kinesis.ListShardsInput{StreamName: aws.String("orders")})
	if err != nil {
		l.Error(err)
		return nil
	}
	for _, s := range out.Shards {
		if s.SequenceNumberRange.EndingSequenceNumber == nil {
			open = append(open, s)
		}
	}
	return open
}

func rangeOf(s types.Shard) keyspace.Range {
	start, _ := keyspace.Parse(*s.HashKeyRange.StartingHashKey)
	end, _ := keyspace.Parse(*s.HashKeyRange.EndingHashKey)
	return keyspace.Range{Start: start, End: end}
}

func (l *load) split(ctx context.Context) {
	shards := l.open(ctx)
	s := shards[l.random.IntN(len(shards))]
	_, err := l.server.Kinesis().SplitShard(ctx, &kinesis.SplitShardInput{
		StreamName: aws.String("orders"), ShardToSplit: s.ShardId,
		NewStartingHashKey: aws.String(rangeOf(s).Middle().String()),
	})
	if err != nil {
		l.Error(err)
	}
}

func (l *load) merge(ctx context.Context) {
	shards := l.open(ctx)
	for _, a := range shards {
		for _, b := range shards {
			if !rangeOf(a).Precedes(rangeOf(b)) {
				continue
			}
			_, err := l.server.Kinesis().MergeShards(ctx, &kinesis.MergeShardsInput{
				StreamName: aws.String("orders"), ShardToMerge: a.ShardId, AdjacentShardToMerge: b.ShardId,
			})
			if err != nil {
				l.Error(err)
			}
			return
		}
	}
}

// Keys are moved under load, with splits and a merge meanwhile, readers that are behind by
// different times, and a server that loses answers: nothing is missing, doubled or out of order,
// in all shards together.
func TestMovesUnderLoad(t *testing.T) {
	seam.SetH(t, 20*time.Second)
	moved, records, switches := 0, 0, 0
	for seed := range uint64(soak) {
		synctest.Test(t, func(t *testing.T) {
			server := runneltest.NewServer(t, runneltest.InMemory(), runneltest.WithStream("orders", 4),
				runneltest.WithFaults(fmt.Sprintf("seed=%d,PutRecords:lose-answer%%5,PutRecords:fail-record%%10,PutRecords:commit-late=5s%%5,PutRecords:hang=3s%%5,"+
					"dynamodb.*:lose-answer%%2,dynamodb.*:error-500%%2", seed)))
			l := &load{T: t, server: server, random: rand.New(rand.NewPCG(seed, 0)), verdict: verdict{
				turn: make(chan struct{}, 1), sent: map[event]int{}, got: map[event]int{},
				upTo: map[runnel.ShardID]runnel.Position{}, byShard: map[event]runnel.ShardID{},
			}}
			reading, stopReading := context.WithCancel(t.Context())
			stop := make(chan struct{})
			var readers, writers sync.WaitGroup
			for range 2 {
				readers.Go(func() { l.read(reading) })
			}
			for i := range uint64(3) {
				writers.Go(func() { l.put(fmt.Sprint("producer-", i), seed<<8+i, stop) })
			}
			<-time.After(10 * time.Second)
			moved += l.moves(t.Context())
			close(stop)
			writers.Wait()
			for began := time.Now(); time.Since(began) < 5*time.Minute; {
				if _, left := l.left(); left == 0 {
					break
				}
				<-time.After(time.Second)
			}
			stopReading()
			readers.Wait()
			sent, left := l.left()
			for i, fault := range l.faults {
				if i < 10 {
					t.Error(fault)
				}
			}
			if left > 0 || len(l.faults) > 0 {
				t.Errorf("of %d records %d are missing; %d are not in order", sent, left, len(l.faults))
			}
			records += sent
			switches += l.switches
		})
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	t.Logf("soak: %d seeds, %d records, %d moves, %d changes of shard", soak, records, moved, switches)
}
