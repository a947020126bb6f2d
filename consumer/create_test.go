package consumer_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"
)

// Twenty workers begin an application of 2,000 shards together. All leases are there soon, and few
// writes are refused.
func TestTableIsBegunTogether(t *testing.T) {
	shards, workers := 2_000, 20
	if underRace {
		shards, workers = 1_000, 10
	}
	bubble(t, shards, func(f *fleet) {
		var creates, scans atomic.Int64
		f.table.PageSize = 1_000
		for n := range workers {
			m := f.start(fmt.Sprintf("w%d", n))
			m.link.mu.Lock()
			m.link.before = func(_ context.Context, op string) error {
				switch op {
				case "PutItem":
					creates.Add(1)
					<-time.After(5 * time.Millisecond)
				case "Scan":
					scans.Add(1)
				}
				return nil
			}
			m.link.mu.Unlock()
		}
		took := f.await(5*time.Second, "all leases", func() bool { return len(f.leases()) == shards })
		t.Logf("%d creates and %d pages of scans for %d leases, in %s", creates.Load(), scans.Load(),
			shards, took)
		if n := creates.Load(); n > int64(2*shards) {
			t.Errorf("%d creates for %d leases", n, shards)
		}
		f.await(4*failover, "even shares", func() bool {
			spread := f.spread()
			return len(spread) == workers && spread[workers-1]-spread[0] <= 1
		})
	})
}
