package producer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/aggregate"
	"github.com/runnel-stream/runnel/internal/retry"
	"github.com/runnel-stream/runnel/keyspace"
)

// shardLister is a Reader that lists the shards which a test sets.
type shardLister struct {
	Reader

	mu     sync.Mutex
	shards map[string]keyspace.Range // open
	err    error
	calls  int
	delay  time.Duration
}

// oneShard returns the list of a stream with one shard.
func oneShard() *shardLister {
	return &shardLister{shards: map[string]keyspace.Range{someShard: keyspace.All()}}
}

func (l *shardLister) set(change func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change()
}

func (l *shardLister) ListShards(
	ctx context.Context, _ *kinesis.ListShardsInput, _ ...func(*kinesis.Options),
) (*kinesis.ListShardsOutput, error) {
	if l.delay > 0 {
		if err := retry.Wait(ctx, l.delay); err != nil {
			return nil, err
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.calls++; l.err != nil {
		return nil, l.err
	}
	output := &kinesis.ListShardsOutput{}
	for id, hashes := range l.shards {
		output.Shards = append(output.Shards, types.Shard{
			ShardId: aws.String(id), HashKeyRange: &types.HashKeyRange{
				StartingHashKey: aws.String(hashes.Start.String()),
				EndingHashKey:   aws.String(hashes.End.String()),
			},
		})
	}
	return output, nil
}

// eachOrderByShard runs a test in virtual time for each order that packs by shard.
func eachOrderByShard(t *testing.T, test func(t *testing.T, order Order)) {
	t.Helper()
	for _, order := range []Order{OrderNone, OrderShard} {
		t.Run(order.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test(t, order) })
		})
	}
}

// openPacked is open with OrderNone, unless set chooses another order.
func (s *stream) openPacked(tb testing.TB, l *shardLister, set func(*Config)) (*Producer, context.Context) {
	tb.Helper()
	return s.open(tb, func(c *Config) {
		c.Order, c.Reader = OrderNone, l
		if set != nil {
			set(c)
		}
	})
}

// Records of many keys share Kinesis records, which have the form of the KPL's: the partition key
// "a", and the hash key of the first record. The first record has an identity without an order.
func TestRecordsOfManyKeysArePacked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stream{latency: 10 * time.Millisecond}
		var d aggregate.Decoder
		s.fault = func(_ context.Context, _ int, in *kinesis.PutRecordsInput) (bool, error) {
			for _, r := range in.Records {
				if !d.Open(r.Data) || *r.PartitionKey != "a" || len(r.Data) > 20_000 {
					t.Fatalf("key %q, %d bytes", *r.PartitionKey, len(r.Data))
				}
				for sub, inside := range d.Records() {
					unit, ok := inside.Unit()
					if ok != (sub == 0) || ok && (!unit.Unordered ||
						*r.ExplicitHashKey != inside.Hash().String()) {
						t.Errorf("record %d: %+v %v, outside %s", sub, unit, ok, *r.ExplicitHashKey)
					}
					if (inside.PartitionKey == "key-7") != (inside.ExplicitHashKey == "7") {
						t.Errorf("key %s has the hash key %q", inside.PartitionKey, inside.ExplicitHashKey)
					}
				}
			}
			return false, nil
		}
		p, ctx := s.openPacked(t, oneShard(), func(c *Config) {
			c.MaxUnitBytes, c.MaxInFlight = 20_000, 1
		})
		places := map[string]bool{}
		for i := range 3000 {
			record := runnel.Record{PartitionKey: fmt.Sprint("key-", i), Data: []byte("1")}
			if i == 7 {
				record.ExplicitHashKey = "7"
			}
			put(t, p, ctx, record, func(r Result) { places[r.Position.String()] = true })
		}
		closeNow(t, p, ctx)
		if s.inOrder(t) != 0 || len(s.read(t, true)) != 3000 || s.calls > 2 || len(places) != 3000 {
			t.Errorf("%d calls, %d places, %+v", s.calls, len(places), p.Stats())
		}
	})
}

// Nothing is sent before the shards are known. A listing that fails is repeated. If the caller has
// no right to list, the records are refused with that cause.
func TestRecordsWaitForTheShards(t *testing.T) {
	eachOrderByShard(t, func(t *testing.T, order Order) {
		s, l := &stream{}, oneShard()
		l.err = io.ErrUnexpectedEOF
		p, ctx := s.openPacked(t, l, func(c *Config) { c.Order = order })
		record := runnel.Record{PartitionKey: "k", Data: []byte("1")}
		future, err := p.Put(ctx, record)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if s.calls != 0 || l.calls > 2*3600 {
			t.Errorf("%d calls, %d lists", s.calls, l.calls)
		}
		l.set(func() { l.err = nil })
		if _, err := future.Wait(ctx); err != nil {
			t.Error(err)
		}
		closeNow(t, p, ctx)
	})
	eachOrderByShard(t, func(t *testing.T, order Order) {
		s, l := &stream{}, oneShard()
		l.err = apiError("ResourceNotFoundException", "stream orders is not there")
		p, ctx := s.openPacked(t, l, func(c *Config) { c.Order = order })
		record := runnel.Record{PartitionKey: "k", Data: []byte("1")}
		for range 3 {
			future, err := p.Put(ctx, record)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := future.Wait(ctx); !errors.Is(err, ErrRefused) ||
				!strings.Contains(err.Error(), "orders is not there") || errors.Is(err, ErrMaybeStored) {
				t.Error(err)
			}
		}
		closeNow(t, p, ctx)
	})
}

// Close cancels a listing for which no record waits.
func TestCloseCancelsAListing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := oneShard()
		l.delay = time.Minute
		p, ctx := (&stream{}).openPacked(t, l, nil)
		synctest.Wait()
		began := time.Now()
		closeNow(t, p, ctx)
		if took := time.Since(began); took > time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

// When an answer names an unknown shard, the shards are listed before the answer counts. A unit
// that was packed for another shard is void, and its records go into the stream again, packed for
// the new shards.
func TestSplitIsSeenInTheAnswers(t *testing.T) {
	eachOrderByShard(t, func(t *testing.T, order Order) {
		low, high := keyspace.All().SplitAt(keyspace.All().Middle())
		l := oneShard()
		s := &stream{latency: time.Millisecond}
		split := false
		s.shards = func(hash string) int {
			key, err := keyspace.Parse(hash)
			if err != nil {
				t.Error(err)
			}
			switch {
			case !split:
				return 0
			case low.Contains(key):
				return 1
			}
			return 2
		}
		p, ctx := s.openPacked(t, l, func(c *Config) { c.Order = order })
		load := func() {
			for i := range 100 {
				record := runnel.Record{PartitionKey: fmt.Sprint("key-", i), Data: []byte("1")}
				put(t, p, ctx, record, func(r Result) {
					hash := keyspace.Of(record.PartitionKey)
					within := map[string]keyspace.Range{
						someShard: keyspace.All(), "shardId-000000000001": low, "shardId-000000000002": high,
					}[string(r.ShardID)]
					if r.Err != nil || r.Unknown > 0 || !within.Contains(hash) {
						t.Errorf("%+v for the hash key %v", r, hash)
					}
				})
			}
			if err := p.Flush(ctx); err != nil {
				t.Fatal(err)
			}
		}
		load()
		before := l.calls
		split = true
		l.set(func() {
			l.shards = map[string]keyspace.Range{"shardId-000000000001": low, "shardId-000000000002": high}
		})
		load()
		void := p.Stats().Void
		load()
		stats := p.Stats()
		if void == 0 || stats.Void != void || stats.Delivered != 300 || l.calls != before+1 ||
			stats.Renewed > 0 || stats.Unknown > 0 {
			t.Errorf("%d lists, %+v", l.calls-before, stats)
		}
		closeNow(t, p, ctx)
	})
}

// An answer names a shard that no list has. Readers may drop the unit or not, so it is looked up.
func TestAnswerOfAnUnknownShard(t *testing.T) {
	eachOrderByShard(t, func(t *testing.T, order Order) {
		s, l := &stream{}, oneShard()
		s.shards = func(string) int { return 9 }
		p, ctx := s.openPacked(t, l, func(c *Config) {
			c.Order, c.CallTimeout = order, time.Second
		})
		future, err := p.Put(ctx, runnel.Record{PartitionKey: "k", Data: []byte("1")})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(1500 * time.Millisecond)
		l.set(func() { l.err = apiError("AccessDeniedException", "no more") })
		if _, err := future.Wait(ctx); !errors.Is(err, ErrUnresolved) || !errors.Is(err, ErrMaybeStored) {
			t.Error(err)
		}
		closeNow(t, p, ctx)
	})
}

// Units that a run of OrderNone has left open are sent again unchanged, and settled. A run with
// another order refuses them.
func TestResumePacked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &memoryJournal{}
		s := &stream{}
		s.fault = func(ctx context.Context, _ int, _ *kinesis.PutRecordsInput) (bool, error) {
			<-ctx.Done()
			return true, ctx.Err() // stored, and the answer is lost
		}
		p, ctx := s.openPacked(t, oneShard(), func(c *Config) { c.Journal = n })
		for i := range 10 {
			record := runnel.Record{PartitionKey: fmt.Sprint("key-", i%5), Data: fmt.Append(nil, 1+i/5)}
			if err := p.PutMarked(ctx, record, uint64(i), nil); err != nil {
				t.Fatal(err)
			}
			if i == 5 {
				synctest.Wait()
			}
		}
		brief, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		if err := p.Close(brief); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		if len(n.open) < 2 || len(n.settled) != 0 {
			t.Fatalf("%d open, %v", len(n.open), n.settled)
		}
		left := slices.Clone(n.open)
		s.fault = nil
		var results []Result
		p, ctx = s.openPacked(t, oneShard(), func(c *Config) {
			c.Journal, c.Resume = n, left
			c.OnResult = func(_ runnel.Record, r Result) { results = append(results, r) }
		})
		closeNow(t, p, ctx)
		distinct := map[userRecord]bool{}
		for _, r := range s.read(t, true) {
			distinct[r] = true
		}
		if len(n.open) != 0 || len(results) != 10 || len(distinct) != 10 ||
			len(s.read(t, true)) != 10 || len(s.read(t, false)) != 20 {
			t.Errorf("%d open, %d results, stored %v", len(n.open), len(results), s.read(t, false))
		}
		cfg := Config{Stream: "orders", Kinesis: s, Resume: left, Logger: silent}
		if _, err := New(ctx, cfg); !errors.Is(err, ErrNotResumable) {
			t.Errorf("resumed in another order: %v", err)
		}
		cfg.Order, cfg.Reader = OrderNone, oneShard()
		// A unit of OrderKey with the keys that a unit of OrderNone would have.
		unit := aggregate.Unit{Number: 1, Low: 1}
		var e aggregate.Encoder
		if err := e.Add(aggregate.Record{
			PartitionKey: "a", ExplicitHashKey: "7", Tags: unit.AppendTo(nil),
		}); err != nil {
			t.Fatal(err)
		}
		cfg.Resume = []FrozenUnit{{
			Unit: unit, PartitionKey: "a", ExplicitHashKey: "7", Data: e.Seal(nil), Marks: []uint64{1},
			FrozenAt: time.Now(),
		}}
		if _, err := New(ctx, cfg); !errors.Is(err, ErrNotResumable) {
			t.Errorf("resumed without an order: %v", err)
		}
		for name, change := range map[string]func(*FrozenUnit){
			"another hash key": func(f *FrozenUnit) { f.ExplicitHashKey = "7" },
			"another key":      func(f *FrozenUnit) { f.PartitionKey = "b" },
			"an order":         func(f *FrozenUnit) { f.Unit.Unordered = false },
		} {
			cfg.Resume = slices.Clone(left)
			change(&cfg.Resume[0])
			if _, err := New(ctx, cfg); !errors.Is(err, ErrNotResumable) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

func TestPackingNeedsAReader(t *testing.T) {
	for _, order := range []Order{OrderNone, OrderShard} {
		err := Config{Stream: "orders", Kinesis: &stream{}, Order: order}.Validate()
		if err == nil || !strings.Contains(err.Error(), "Reader is missing") {
			t.Errorf("%v: %v", order, err)
		}
	}
}
