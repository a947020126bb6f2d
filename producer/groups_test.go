package producer

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
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

// sharded is a stream of equal shards that can refuse records, stores nothing, and answers after a
// delay.
type sharded struct {
	KinesisAPI
	*shardLister

	latency time.Duration
	ranges  []keyspace.Range
	ids     []string
	// refuse decides about each record of a call, by its shard. Nil: no record is refused.
	refuse func(shard int, r *types.PutRecordsRequestEntry) bool
	// nameless leaves the shard out of refusals, so that the producer does not slow it down.
	nameless bool
}

func newSharded(shards int) *sharded {
	s := &sharded{
		shardLister: &shardLister{shards: map[string]keyspace.Range{}},
		ranges:      keyspace.Uniform(shards),
		latency:     20 * time.Millisecond,
	}
	for i, r := range s.ranges {
		s.ids = append(s.ids, fmt.Sprintf("shardId-%012d", i))
		s.shardLister.shards[s.ids[i]] = r
	}
	return s
}

// shardOf returns the index of a hash key's shard.
func (s *sharded) shardOf(hash keyspace.Key) int {
	for i, r := range s.ranges {
		if r.Contains(hash) {
			return i
		}
	}
	panic("the shards do not cover the key space")
}

func (s *sharded) PutRecords(ctx context.Context, input *kinesis.PutRecordsInput,
	_ ...func(*kinesis.Options),
) (*kinesis.PutRecordsOutput, error) {
	if err := retry.Wait(ctx, s.latency); err != nil {
		return nil, err
	}
	results := make([]types.PutRecordsResultEntry, len(input.Records))
	for i := range input.Records {
		r := &input.Records[i]
		shard := s.shardOf(aggregate.Record{
			PartitionKey: *r.PartitionKey, ExplicitHashKey: aws.ToString(r.ExplicitHashKey),
		}.Hash())
		if s.refuse == nil || !s.refuse(shard, r) {
			results[i].ShardId, results[i].SequenceNumber = &s.ids[shard], &someNumber
			continue
		}
		message := "Rate exceeded for shard " + s.ids[shard]
		if s.nameless {
			message = "Rate exceeded"
		}
		results[i].ErrorCode = aws.String("ProvisionedThroughputExceededException")
		results[i].ErrorMessage = &message
	}
	return &kinesis.PutRecordsOutput{Records: results}, nil
}

// keysIn returns n keys with the given prefix and with hash keys in a range.
func keysIn(within keyspace.Range, prefix string, n int) []string {
	keys := make([]string, 0, n)
	for i := 0; len(keys) < n; i++ {
		if key := fmt.Sprint(prefix, i); within.Contains(keyspace.Of(key)) {
			keys = append(keys, key)
		}
	}
	return keys
}

// eachOrderWithUnits runs a test in virtual time for each order that numbers its units.
func eachOrderWithUnits(t *testing.T, test func(t *testing.T, order Order)) {
	t.Helper()
	for _, order := range []Order{OrderKey, OrderShard, OrderNone} {
		t.Run(order.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test(t, order) })
		})
	}
}

// closeRefused closes a producer that has records which are always refused, and checks the error.
func closeRefused(t *testing.T, p *Producer) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := p.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Close with a record that is refused for ever: %v", err)
	}
}

// A record that is always refused delays only the keys of its own group, however many units the
// others make, because each group has its own LOW and window.
func TestRefusedRecordStopsOnlyItsGroup(t *testing.T) {
	eachOrderWithUnits(t, func(t *testing.T, order Order) {
		s := newSharded(8)
		const bad = "bad-0" // in group 13 and shard 6
		hashOfBad := keyspace.Of(bad).String()
		s.nameless = true
		s.refuse = func(_ int, r *types.PutRecordsRequestEntry) bool {
			return *r.PartitionKey == bad || aws.ToString(r.ExplicitHashKey) == hashOfBad
		}
		p, ctx := s.open(t, func(c *Config) {
			c.Order, c.MaxUnitBytes = order, 1 // each record in a unit of its own
		})
		if err := p.PutFunc(ctx, runnel.Record{PartitionKey: bad}, nil); err != nil {
			t.Fatal(err)
		}
		// More units than the window that all lanes would have together.
		const callers, each = 8, 9000
		var delivered atomic.Int64
		var all sync.WaitGroup
		for i, r := range keyspace.Uniform(16) {
			if i%2 == 1 && !r.Contains(keyspace.Of(bad)) || r.Precedes(groupRange(keyspace.Of(bad))) {
				all.Go(func() { putEach(t, p, ctx, keysIn(r, "key-", each), &delivered) })
			}
		}
		time.Sleep(time.Minute) // less than the horizon, at which the bad record gets another number
		if n := delivered.Load(); n != callers*each {
			t.Errorf("%d of %d records of other groups are delivered", n, callers*each)
		}
		// In its own group, as many units go as the window has numbers. In OrderNone all go, since
		// a unit may be in the other group of its shard.
		var behind atomic.Int64
		all.Go(func() { putEach(t, p, ctx, keysIn(groupRange(keyspace.Of(bad)), "key-", 5000), &behind) })
		time.Sleep(time.Minute)
		want := int64(4096)
		if order == OrderNone {
			want = 5000
		}
		if n := behind.Load(); n != want {
			t.Errorf("%d records of its group are delivered, want %d", n, want)
		}
		closeRefused(t, p)
		all.Wait()
	})
}

// groupRange returns the 16th of the key space that contains a hash key.
func groupRange(hash keyspace.Key) keyspace.Range {
	for _, r := range keyspace.Uniform(16) {
		if r.Contains(hash) {
			return r
		}
	}
	return keyspace.Range{}
}

// putEach puts a record of each key, until the producer is closed.
func putEach(
	t *testing.T, p *Producer, ctx context.Context, keys []string, delivered *atomic.Int64,
) {
	for _, key := range keys {
		err := p.PutFunc(ctx, runnel.Record{PartitionKey: key}, func(r Result) {
			if r.Err == nil {
				delivered.Add(1)
			}
		})
		if err != nil {
			if !errors.Is(err, ErrClosed) {
				t.Error(err)
			}
			return
		}
	}
}

// The caller of a shard that refuses everything waits for room in the buffer, and no other caller
// does.
func TestFullGroupBlocksOnlyItsCallers(t *testing.T) {
	for name, limit := range map[string]func(*Config){
		"records": func(c *Config) { c.MaxBufferedRecords = 1000 },
		"bytes": func(c *Config) {
			c.MaxBufferedBytes, c.MaxRecordBytes, c.MaxUnitBytes = 20_000, 500, 500
		},
	} {
		for _, order := range []Order{OrderKey, OrderShard, OrderNone, OrderPlain} {
			t.Run(name+"/"+order.String(), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newSharded(8)
					s.refuse = func(shard int, _ *types.PutRecordsRequestEntry) bool { return shard == 3 }
					p, ctx := s.open(t, func(c *Config) { c.Order = order; limit(c) })
					const each = 2000
					var delivered [8]atomic.Int64
					var all sync.WaitGroup
					for i, r := range s.ranges {
						all.Go(func() { putEach(t, p, ctx, keysIn(r, "key-", each), &delivered[i]) })
					}
					time.Sleep(5 * time.Minute)
					for i := range delivered {
						if n := delivered[i].Load(); n != each && i != 3 {
							t.Errorf("%d of %d records of shard %d are delivered", n, each, i)
						}
					}
					closeRefused(t, p)
					all.Wait()
				})
			})
		}
	}
}

// While one shard refuses nine of ten records, the others keep at least 90 % of their rate. Each
// shard has its own caller.
func TestOtherShardsKeepTheirRate(t *testing.T) {
	for _, nameless := range []bool{false, true} {
		for _, order := range []Order{OrderKey, OrderShard, OrderNone, OrderPlain} {
			t.Run(fmt.Sprintf("%v/nameless=%v", order, nameless), func(t *testing.T) {
				calm := rateOfOthers(t, order, nameless, 0)
				slow := rateOfOthers(t, order, nameless, 90)
				t.Logf("the other shards' records a second: %d, and %d without refusals", slow, calm)
				if slow < calm*9/10 {
					t.Errorf("the other shards' records a second: %d, and %d without refusals", slow, calm)
				}
			})
		}
	}
}

// rateOfOthers returns the records a second of the shards that refuse nothing, while the first one
// refuses the given percentage from the second second on.
func rateOfOthers(t *testing.T, order Order, nameless bool, percent int) (rate int64) {
	synctest.Test(t, func(t *testing.T) {
		s := newSharded(8)
		s.nameless = nameless
		var asked atomic.Int64
		began := time.Now()
		s.refuse = func(shard int, _ *types.PutRecordsRequestEntry) bool {
			return shard == 0 && time.Since(began) > time.Second && int(asked.Add(1)*37%100) < percent
		}
		p, ctx := s.open(t, func(c *Config) {
			c.Order, c.MaxInFlight, c.MaxBatchRecords = order, 2, 20
			c.MaxBufferedRecords, c.MaxUnitBytes = 2000, 300
		})
		var delivered [2]atomic.Int64
		var all sync.WaitGroup
		for i, r := range s.ranges {
			keys := keysIn(r, "key-", 150)
			random := rand.New(rand.NewPCG(1, uint64(i)))
			all.Go(func() {
				for p.open.Err() == nil {
					key := keys[random.IntN(len(keys))]
					putEach(t, p, ctx, []string{key}, &delivered[min(i, 1)])
				}
			})
		}
		time.Sleep(3 * time.Second) // the buffer fills up
		before := delivered[1].Load()
		time.Sleep(4 * time.Second)
		rate = (delivered[1].Load() - before) / 4
		brief, cancel := context.WithTimeout(ctx, time.Millisecond)
		defer cancel()
		_ = p.Close(brief) // the remaining records of the first shard do not count
		all.Wait()
	})
	return rate
}

func (s *sharded) open(tb testing.TB, set func(*Config)) (*Producer, context.Context) {
	tb.Helper()
	p, err := New(tb.Context(), func() Config {
		c := Config{Stream: "orders", Kinesis: s, Reader: s, Logger: silent}
		set(&c)
		return c
	}())
	if err != nil {
		tb.Fatal(err)
	}
	return p, tb.Context()
}

// isOf reports whether a unit is from the producer: its producer id is the ID except for the last
// four bits.
func isOf(p *Producer, u aggregate.Unit) bool {
	named := u.Producer
	named[15] &^= 15
	return named == p.ID()
}

// A group is in trouble from a failed attempt until eight units were stored at their first attempt,
// and while its lanes wait for their shard or for a number. A unit of OrderNone puts all groups of
// its shard in trouble.
func TestTrouble(t *testing.T) {
	// The shard is slowed down, and then stores many units.
	const slowed = "limits order=plain\nput a#3\nlaunch\nland 1 throttled\n" +
		"put b#3\nlaunch\nland 2 stored\nput c#3\nlaunch\nland 3 throttled\n" +
		"put d#3 e#3 f#3 g#3 h#3 i#3 j#3 k#3\nlaunch\n" +
		"land 4 stored stored stored stored stored stored stored stored\n" +
		"put d#3 e#3 f#3 g#3 h#3 i#3 j#3 k#3\nlaunch\n" +
		"land 5 stored stored stored stored stored stored stored stored\n" +
		"put m#3:300000\nlaunch\nland 6 stored"
	for _, c := range []struct{ name, script, want string }{
		{"none", "limits order=plain\nput a#3\nlaunch\nland 1 stored\nput a#3\nlaunch", ""},
		{"throttled", "limits order=plain\nput a#3\nlaunch\nland 1 throttled", "3"},
		{"unknown", "limits order=key\nput a#3 b#4\nlaunch\nland 1 unknown stored", "3"},
		{"a call that failed", "limits order=key\nput a#3 b#4\nlaunch\nland 1 all=notsent", "3 4"},
		{
			"after eight units", "limits order=plain\nput a#3\nlaunch\nland 1 failed\n" +
				"put b#3 c#3 d#3 e#3 f#3 g#3 h#3\nlaunch\n" +
				"land 2 stored stored stored stored stored stored stored", "3",
		},
		{
			"after nine units", "limits order=plain\nput a#3\nlaunch\nland 1 failed\n" +
				"put b#3 c#3 d#3 e#3 f#3 g#3 h#3 i#3\nlaunch\n" +
				"land 2 stored stored stored stored stored stored stored stored", "",
		},
		{
			"a retry is not clean", "limits order=plain\nput a#3 b#3\nlaunch\nland 1 failed stored\n" +
				"put b#3 c#3 d#3 e#3 f#3 g#3\nlaunch\nland 2 stored stored stored stored stored stored\n" +
				"after 60ms\nlaunch\nland 3 stored", "3",
		},
		{"blocked", "limits order=key window=1 calls=9 records=1\nput a#3 b#3 c#3\nlaunch", "3"},
		{"not parked", slowed, ""},
		{"parked", slowed + "\nput n#3\nlaunch", "3"},
		{
			"packed", "limits order=none\nchart A:0/4 B:1/4 C:1/2\nput a#5\nlaunch\nland 1 throttled",
			"4 5 6 7",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := play(t, c.script)
			var troubled []string
			for g := range groups {
				if p.core.groups.troubled(g) {
					troubled = append(troubled, strconv.Itoa(g))
				}
			}
			if got := strings.Join(troubled, " "); got != c.want {
				t.Errorf("in trouble are %q, want %q, after:\n%s", got, c.want, p.out.String())
			}
		})
	}
}

// A key that is put faster than its lane delivers, one unit at a time, is not in trouble. Its group
// may use the whole buffer except the reserves of the others, and its caller goes on as long as
// there is room.
func TestBusyKeyMayUseTheBuffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSharded(1)
		var failed atomic.Bool
		s.refuse = func(int, *types.PutRecordsRequestEntry) bool { return failed.CompareAndSwap(false, true) }
		p, ctx := s.open(t, func(c *Config) { c.Order, c.MaxBufferedRecords = OrderPlain, 3200 })
		putEach(t, p, ctx, keysIn(keyspace.All(), "key-", 2000), &atomic.Int64{})
		hot := make([]string, 1500)
		for i := range hot {
			hot[i] = "hot"
		}
		if err := p.Flush(ctx); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * calmAfter) // the shard is not slowed down any more
		putEach(t, p, ctx, keysIn(keyspace.All(), "calm-", 2000), &atomic.Int64{})
		if err := p.Flush(ctx); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		putEach(t, p, ctx, hot, &atomic.Int64{})
		if took := time.Since(began); took != 0 {
			t.Errorf("the records of a hot key waited for room for %v", took)
		}
		closeNow(t, p, ctx)
	})
}
