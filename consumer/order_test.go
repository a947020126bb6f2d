package consumer_test

import (
	"context"
	"testing"
	"time"

	"github.com/runnel-stream/runnel/consumer"
)

// The child of a merge waits for a parent that has no lease yet, because it was itself split
// from a shard that is still being read.
func TestChildWaitsForAParentYetToCome(t *testing.T) {
	bubble(t, 2, func(f *fleet) {
		first := f.stream.open()[0].id
		f.stream.put("a", keys(20)...)
		f.stream.split(0) // the first shard becomes 2 and 3,
		f.stream.put("b", keys(20)...)
		f.stream.merge(1) // and 3 and the second one become 4
		f.stream.put("c", keys(20)...)
		hold := make(chan struct{})
		slow := func(c *consumer.Config) {
			c.Handler = func(ctx context.Context, b *consumer.Batch) error {
				if b.ShardID == first {
					<-hold
				}
				return f.handle(ctx, b)
			}
		}
		f.start("w1", slow)
		f.start("w2", slow)
		<-time.After(10 * time.Minute)
		close(hold)
		f.await(2*failover, "60 records", func() bool { n, _ := f.delivered(); return n == 60 })
	})
}
