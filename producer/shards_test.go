package producer

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"
	"pgregory.net/rapid"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/keyspace"
)

// shardOf returns the index of a key's shard in a stream of two.
func shardOf(key string) int {
	if keyspace.Of(key).Less(keyspace.Key{Hi: 1 << 63}) {
		return 0
	}
	return 1
}

// The producer adapts to a shard that takes 200 KiB a second, so that it refuses few records. The
// other shard keeps its rate.
func TestThrottledShardIsPaced(t *testing.T) {
	for _, order := range []Order{OrderPlain, OrderKey} {
		synctest.Test(t, func(t *testing.T) {
			const limit, size, records = 200 << 10, 900, 4000
			s := &stream{latency: 5 * time.Millisecond, shards: shardOf}
			began := time.Now()
			tokens, filled, late := 0.0, began, 0
			s.refuse = func(_ int, r *types.PutRecordsRequestEntry) string {
				if shardOf(*r.PartitionKey) == 1 {
					return ""
				}
				now := time.Now()
				tokens = min(tokens+limit*now.Sub(filled).Seconds(), limit)
				if filled = now; tokens < 0 {
					if now.Sub(began) > 2*time.Second {
						late++
					}
					return "ProvisionedThroughputExceededException"
				}
				tokens -= float64(len(r.Data))
				return ""
			}
			p, ctx := s.open(t, func(c *Config) { c.Order, c.MaxUnitBytes = order, 4<<10 })
			var done [2]time.Duration
			bytes := 0
			for i := range records {
				key := fmt.Sprint("key-", i%400)
				if shardOf(key) == 0 {
					bytes += size
				}
				put(t, p, ctx, runnel.Record{PartitionKey: key, Data: make([]byte, size)}, func(Result) {
					done[shardOf(key)] = time.Since(began)
				})
			}
			closeNow(t, p, ctx)
			stats, least := p.Stats(), time.Duration(float64(bytes)/limit*float64(time.Second))
			if done[1] > time.Second || done[0] > least*5/4+time.Second {
				t.Errorf("%v: the free shard took %v, the other %v, want 1 s and %v", order, done[1],
					done[0], least)
			}
			if late > 60 {
				t.Errorf("%v: %d units were refused after two seconds", order, late)
			}
			t.Logf("%v: %d records were refused, %d units after two seconds; %v at %d bytes a second "+
				"took %v", order, stats.Throttled, late, least, limit, done[0])
		})
	}
}

func TestShardInMessage(t *testing.T) {
	for message, want := range map[string]runnel.ShardID{
		"Rate exceeded for shard shardId-000000000017 in stream orders under account 1.": "shardId-000000000017",
		"Rate exceeded": "", "shardId-": "", "shardId-12x": "",
		"shardId-" + strings.Repeat("1", 200): "",
	} {
		if got := shardIn(message); got != want {
			t.Errorf("%.60q: %q, want %q", message, got, want)
		}
	}
}

// Whatever shards answer for whatever keys, the learnt spans are disjoint and in order, the last
// answer counts, and no lane is lost.
func TestSpans(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newCore("s", Config{}.withDefaults().limits(), rand.New(rand.NewPCG(1, 2)))
		now := time.Unix(0, 0)
		c.shards.known = map[runnel.ShardID]*pace{}
		for range rapid.IntRange(1, 60).Draw(t, "answers") {
			hash := keyspace.Key{Hi: uint64(rapid.IntRange(0, 50).Draw(t, "hash"))}
			l := &lane{key: laneKey{partition: "a"}, hash: hash, hashed: true}
			shard := runnel.ShardID(fmt.Sprint("shardId-", rapid.IntRange(0, 5).Draw(t, "shard")))
			c.learn(now, l, shard)
			if p := c.shards.of(l); p == nil || p.shard != shard {
				t.Fatalf("%v: %v, want %s", hash, p, shard)
			}
			for i, p := range c.shards.spans {
				if c.shards.known[p.shard] != p || p.span.End.Less(p.span.Start) ||
					i > 0 && !c.shards.spans[i-1].span.End.Less(p.span.Start) {
					t.Fatalf("span %d is %v of %s", i, p.span, p.shard)
				}
			}
			if spanned := len(c.shards.spans); spanned != len(c.shards.known) {
				t.Fatalf("%d spans of %d shards", spanned, len(c.shards.known))
			}
		}
	})
}
