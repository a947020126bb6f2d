package producer

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/runnel-stream/runnel"
)

// BenchmarkCore measures the core's decisions for a record: put, launch, land, settle. keys is the
// number of lanes.
func BenchmarkCore(b *testing.B) {
	for _, keys := range []int{14, 10_000, 1_000_000} {
		b.Run(fmt.Sprintf("keys=%d", keys), func(b *testing.B) {
			names := make([]string, keys)
			for i := range names {
				names[i] = fmt.Sprint("repository-", i)
			}
			c := newCore("s", Config{}.withDefaults().limits(), rand.New(rand.NewPCG(1, 2)))
			data, s := make([]byte, 100), new(sealer)
			now := time.Unix(0, 0)
			each := make([]verdict, 500)
			for i := range each {
				each[i] = verdict{fate: stored, shard: "s", sequence: "1"}
			}
			work := func() {
				for made := c.launch(now); made != nil; made = c.launch(now) {
					made.seal(c.packing, s)
					c.land(now, made, outcome{each: each[:len(made.lanes)]})
				}
				c.ledger.settled = c.ledger.settled[:0]
			}
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				key := names[(i*7919)%keys]
				c.putAlone(now, &entry{record: runnel.Record{PartitionKey: key, Data: data}})
				if c.ready.count >= min(keys, 4000) {
					work()
				}
			}
			work()
		})
	}
}

// BenchmarkThroughTheProducer measures a record from Put to its callback, with a stream that
// answers at once: everything except the SDK and the network.
func BenchmarkThroughTheProducer(b *testing.B) {
	for _, order := range []Order{OrderKey, OrderShard, OrderNone, OrderPlain} {
		for _, keys := range []int{14, 10_000, 1_000_000} {
			b.Run(fmt.Sprintf("order=%v/keys=%d", order, keys), func(b *testing.B) {
				names := make([]string, keys)
				for i := range names {
					names[i] = fmt.Sprint("repository-", i)
				}
				p, ctx := (&stream{forget: true}).open(b, func(c *Config) {
					c.Order, c.Reader = order, oneShard()
				})
				data := make([]byte, 100)
				b.ReportAllocs()
				b.ResetTimer()
				for i := range b.N {
					record := runnel.Record{PartitionKey: names[(i*7919)%keys], Data: data}
					if err := p.PutFunc(ctx, record, nil); err != nil {
						b.Fatal(err)
					}
				}
				closeNow(b, p, ctx)
				b.ReportMetric(float64(b.N)/float64(p.Stats().Calls), "records/call")
			})
		}
	}
}

// BenchmarkThrottledShard measures the records a second of seven shards, first while the eighth
// shard refuses nothing, and then while it refuses nine of ten records. Each shard has its own
// caller, with many keys, and a call takes 20 ms. %kept is the second rate in percent of the first.
func BenchmarkThrottledShard(b *testing.B) {
	const warmUp, measured = time.Second, 2 * time.Second
	for _, order := range []Order{OrderKey, OrderShard, OrderNone, OrderPlain} {
		b.Run(fmt.Sprintf("order=%v", order), func(b *testing.B) {
			var rates [2]float64
			for range b.N {
				for i, percent := range []int{0, 90} {
					rates[i] += rateBeside(b, order, percent, warmUp, measured)
				}
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(rates[0]/float64(b.N), "calm/s")
			b.ReportMetric(rates[1]/float64(b.N), "throttled/s")
			b.ReportMetric(100*rates[1]/rates[0], "%kept")
		})
	}
}

// rateBeside returns the records a second of seven shards while one further shard refuses the given
// percentage of its records.
func rateBeside(b *testing.B, order Order, percent int, warmUp, measured time.Duration) float64 {
	b.Helper()
	s := newSharded(8)
	s.refuse = func(shard int, _ *types.PutRecordsRequestEntry) bool {
		return shard == 0 && rand.IntN(100) < percent
	}
	p, ctx := s.open(b, func(c *Config) { c.Order = order })
	ctx, end := context.WithCancel(ctx)
	var others atomic.Int64
	var all sync.WaitGroup
	data := make([]byte, 100)
	for i, r := range s.ranges {
		keys := keysIn(r, "repository-", 20_000)
		done := func(Result) { others.Add(1) }
		if i == 0 {
			done = nil
		}
		all.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				record := runnel.Record{PartitionKey: keys[n*7919%len(keys)], Data: data}
				_ = p.PutFunc(ctx, record, done) // until the end
			}
		})
	}
	time.Sleep(warmUp)
	before, began := others.Load(), time.Now()
	time.Sleep(measured)
	rate := float64(others.Load()-before) / time.Since(began).Seconds()
	end()
	all.Wait()
	brief, cancel := context.WithTimeout(b.Context(), time.Millisecond)
	defer cancel()
	_ = p.Close(brief) // the remaining records do not count
	return rate
}
