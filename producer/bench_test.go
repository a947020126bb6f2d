package producer

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/runnel-stream/runnel"
)

// BenchmarkCore is the cost of the decisions for a record: put, launch, land, settle. keys is
// how many lanes there are.
func BenchmarkCore(b *testing.B) {
	for _, keys := range []int{14, 10_000, 1_000_000} {
		b.Run(fmt.Sprintf("keys=%d", keys), func(b *testing.B) {
			names := make([]string, keys)
			for i := range names {
				names[i] = fmt.Sprint("repository-", i)
			}
			c := newCore("s", Config{}.withDefaults().limits(), rand.New(rand.NewPCG(1, 2)))
			data := make([]byte, 100)
			now := time.Unix(0, 0)
			each := make([]verdict, 500)
			for i := range each {
				each[i] = verdict{fate: stored, shard: "s", sequence: "1"}
			}
			work := func() {
				for made := c.launch(now); made != nil; made = c.launch(now) {
					c.land(now, made, outcome{each: each[:len(made.lanes)]})
				}
				c.settled = c.settled[:0]
			}
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				key := names[(i*7919)%keys]
				c.put(now, &entry{record: runnel.Record{PartitionKey: key, Data: data}})
				if c.ready.count >= min(keys, 4000) {
					work()
				}
			}
			work()
		})
	}
}

// BenchmarkThroughTheProducer is the cost of a record from Put to its callback, with a stream
// that answers at once: everything but the SDK and the network.
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
