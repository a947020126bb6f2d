package lease_test

import (
	"fmt"
	"testing"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/lease"
)

// A plan of ten thousand leases and two hundred workers, one of which has just come.
func BenchmarkPlan(b *testing.B) {
	var v lease.View
	for n := range 200 {
		v.Members = append(v.Members, lease.Member{Name: fmt.Sprintf("host-%d", n)})
	}
	for n := range 10_000 {
		v.Rows = append(v.Rows, lease.Row{
			Key:   runnel.ShardID(fmt.Sprintf("shardId-%012d", n)),
			Owner: v.Members[n%199].Name,
		})
	}
	for b.Loop() {
		if plan := v.Plan(); len(plan.Moves) != 50 {
			b.Fatalf("%d moves", len(plan.Moves))
		}
	}
}
