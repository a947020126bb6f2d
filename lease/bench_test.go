package lease_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/lease"
)

// BenchmarkPlan plans for one of a hundred workers that share ten thousand leases.
func BenchmarkPlan(b *testing.B) {
	rows := make([]lease.Lease, 10_000)
	for i := range rows {
		rows[i] = lease.Lease{
			Key:        runnel.ShardID(fmt.Sprintf("shardId-%012d", i)),
			Owner:      fmt.Sprint("w", i%100),
			Checkpoint: runnel.Position{Sequence: runnel.TrimHorizon},
		}
	}
	var watch lease.Watch
	now := time.Now()
	b.ReportAllocs()
	for b.Loop() {
		lease.Plan(now, watch.Update(now, rows), "w7", lease.Limits{Failover: failover})
	}
}
