package producer

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/aggregate"
	"github.com/runnel-stream/runnel/keyspace"
)

// openShard is open with OrderShard, for a stream of one shard.
func (s *stream) openShard(tb testing.TB, set func(*Config)) (*Producer, context.Context) {
	tb.Helper()
	return s.openPacked(tb, oneShard(), func(c *Config) {
		if c.Order = OrderShard; set != nil {
			set(c)
		}
	})
}

// The units of many lanes share Kinesis records. Each unit has the records of one lane, and its
// number on the first of them. The result of each record has its place.
func TestUnitsOfManyLanesShareRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stream{latency: 10 * time.Millisecond}
		var d aggregate.Decoder
		numbers := map[tag]bool{}
		s.fault = func(_ context.Context, _ int, in *kinesis.PutRecordsInput) (bool, error) {
			for _, r := range in.Records {
				if !d.Open(r.Data) || *r.PartitionKey != "a" || len(r.Data) > 20_000 {
					t.Fatalf("key %q, %d bytes", *r.PartitionKey, len(r.Data))
				}
				key := ""
				for sub, inside := range d.Records() {
					if sub == 0 && *r.ExplicitHashKey != inside.Hash().String() {
						t.Errorf("outside %s", *r.ExplicitHashKey)
					}
					unit, ok := inside.Unit()
					if begins := inside.PartitionKey != key; ok != begins || unit.Unordered ||
						ok && numbers[tag{unit.Producer, unit.Number}] {
						t.Errorf("record %d: %+v %v", sub, unit, ok)
					}
					key = inside.PartitionKey
					numbers[tag{unit.Producer, unit.Number}] = true
				}
			}
			return false, nil
		}
		p, ctx := s.openShard(t, func(c *Config) { c.MaxUnitBytes, c.MaxInFlight = 20_000, 1 })
		at := map[string]userRecord{}
		for i := range 2000 {
			for n := range 2 {
				key, data := fmt.Sprint("key-", i), fmt.Sprint(n+1)
				put(t, p, ctx, runnel.Record{PartitionKey: key, Data: []byte(data)}, func(r Result) {
					at[r.Position.String()] = userRecord{key, data}
				})
			}
		}
		closeNow(t, p, ctx)
		if s.inOrder(t) != 0 || s.calls > 3 || len(at) != 4000 || len(s.data) > 50 {
			t.Errorf("%d calls, %d records, %d places, %+v", s.calls, len(s.data), len(at), p.Stats())
		}
		for i, data := range s.data {
			d.Open([]byte(data))
			for sub, r := range d.Records() {
				place := runnel.Position{Sequence: runnel.SequenceNumber(fmt.Sprint(i + 1)), Sub: int64(sub)}
				if want := (userRecord{r.PartitionKey, string(r.Data)}); at[place.String()] != want {
					t.Fatalf("%v holds %v, and the result is that of %v", place, want, at[place.String()])
				}
			}
		}
	})
}

// A lane's records may need more bytes in a shared Kinesis record than alone, since their keys may
// have large indexes in its tables. The limit is kept nevertheless.
func TestSharedRecordsKeepTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stream{latency: time.Millisecond}
		l := oneShard()
		l.delay = time.Millisecond // all records are put before the first call
		p, ctx := s.openPacked(t, l, func(c *Config) { c.Order, c.MaxInFlight = OrderShard, 1 })
		for i := range 130 {
			put(t, p, ctx, runnel.Record{PartitionKey: fmt.Sprint("key-", i), Data: []byte("1")}, nil)
		}
		for range 60_000 {
			put(t, p, ctx, runnel.Record{PartitionKey: "hot"}, nil)
		}
		closeNow(t, p, ctx)
		most := 0
		for _, data := range s.data {
			most = max(most, len(data)+len(outerKey))
		}
		if most > unitBytes || most < unitBytes/2 || p.Stats().Delivered != 60_130 {
			t.Errorf("the largest Kinesis record has %d bytes, the limit is %d; %+v", most, unitBytes,
				p.Stats())
		}
	})
}

// Units of one Kinesis record that fail together are retried together, and share a record again.
func TestUnitsThatFailTogetherShareARecordAgain(t *testing.T) {
	cfg := Config{Order: OrderShard}.withDefaults()
	c, now := newCore("s", cfg.limits(), rand.New(rand.NewPCG(1, 2))), time.Unix(0, 0)
	all := []runnel.Shard{{ID: "s", Range: keyspace.All()}}
	if err := c.takeShards(now, all, nil); err != nil {
		t.Fatal(err)
	}
	for i := range 50 {
		c.putAlone(now, &entry{record: runnel.Record{PartitionKey: fmt.Sprint("key-", i)}})
	}
	made := c.launch(now)
	c.land(now, made, outcome{each: []verdict{{fate: throttled, err: errors.New("slow")}}})
	at, _ := c.wake()
	c.tick(at)
	if again := c.launch(at); again == nil || len(again.lanes) != 50 || len(again.parcels) != 1 {
		t.Errorf("%+v goes again of %d", again, len(made.lanes))
	}
}

// The journal has each unit as a Kinesis record of its own. A run of OrderShard or of OrderKey
// sends it again under its number, alone or with others.
func TestResumeShard(t *testing.T) {
	for _, order := range []Order{OrderShard, OrderKey} {
		t.Run(order.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n, s := &memoryJournal{}, &stream{}
				s.fault = func(ctx context.Context, _ int, _ *kinesis.PutRecordsInput) (bool, error) {
					<-ctx.Done()
					return true, ctx.Err() // stored, and the answer is lost
				}
				p, ctx := s.openShard(t, func(c *Config) {
					c.Journal, c.Linger = n, time.Millisecond
				})
				for i := range 20 {
					record := runnel.Record{PartitionKey: fmt.Sprint("key-", i%5), Data: fmt.Append(nil, 1+i/5)}
					if err := p.PutMarked(ctx, record, uint64(i), nil); err != nil {
						t.Fatal(err)
					}
				}
				brief, cancel := context.WithTimeout(ctx, time.Second)
				defer cancel()
				if err := p.Close(brief); !errors.Is(err, context.DeadlineExceeded) {
					t.Fatal(err)
				}
				if len(n.open) != 5 || len(n.settled) != 0 || n.twice > 0 || len(s.data) != 1 {
					t.Fatalf("%d open, %v, %d stored", len(n.open), n.settled, len(s.data))
				}
				left := slices.Clone(n.open)
				s.fault = nil
				p, ctx = s.openPacked(t, oneShard(), func(c *Config) {
					c.Journal, c.Resume, c.Order = n, left, order
				})
				put(t, p, ctx, runnel.Record{PartitionKey: "key-1", Data: []byte("5")}, nil)
				closeNow(t, p, ctx)
				if got := s.read(t, true); len(n.open) != 0 || inOrder(t, got) != 0 || len(got) != 21 ||
					s.inOrder(t) != 20 {
					t.Errorf("%d open, %+v, stored %v", len(n.open), p.Stats(), got)
				}
			})
		})
	}
}
