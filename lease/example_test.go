package lease_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/lease"
	"github.com/runnel-stream/runnel/lease/leasetest"
)

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// One worker takes a lease and writes a checkpoint. A second worker takes the lease over, and no
// later write of the first one succeeds.
func Example() {
	ctx := context.Background()
	table, err := lease.New(lease.Config{
		DynamoDB: new(leasetest.Memory), Table: "orders-app", // or a *dynamodb.Client
		Stream: lease.Stream{Name: "orders", Created: time.UnixMilli(1_700_000_000_000)},
	})
	check(err)
	check(table.Ensure(ctx))
	free, _, err := table.Create(ctx, lease.Lease{
		Key: "shardId-000000000000", Checkpoint: runnel.Position{Sequence: runnel.TrimHorizon},
	})
	check(err)

	first, err := table.Take(ctx, free, lease.Claim{Worker: "worker-1"})
	check(err)
	first, err = table.Checkpoint(ctx, first, lease.Mark{
		At: runnel.Position{Sequence: "1001"},
	})
	check(err)
	second, err := table.Take(ctx, first, lease.Claim{Worker: "worker-2"})
	check(err)
	fmt.Println(second.Owner, "goes on after", second.Checkpoint)

	_, err = table.Checkpoint(ctx, first, lease.Mark{
		At: runnel.Position{Sequence: "1002"},
	})
	fmt.Println("worker-1:", errors.Is(err, lease.ErrLeaseLost))
	// Output:
	// worker-2 goes on after 1001
	// worker-1: true
}

// A pause in the row holds for every worker that has the lease, now and later.
func ExampleTable_Pause() {
	ctx := context.Background()
	table, err := lease.New(lease.Config{
		DynamoDB: new(leasetest.Memory), Table: "orders-app",
		Stream: lease.Stream{Name: "orders", Created: time.UnixMilli(1_700_000_000_000)},
	})
	check(err)
	check(table.Ensure(ctx))
	free, _, err := table.Create(ctx, lease.Lease{
		Key: "shardId-000000000000", Checkpoint: runnel.Position{Sequence: runnel.TrimHorizon},
	})
	check(err)
	_, err = table.Pause(ctx, free)
	check(err)
	held, err := table.Take(ctx, free, lease.Claim{Worker: "worker-1"})
	check(err)
	fmt.Println(held.Owner, "has a paused shard:", held.Paused)
	resumed, err := table.Resume(ctx, held)
	check(err)
	fmt.Println("paused:", resumed.Paused)
	// Output:
	// worker-1 has a paused shard: true
	// paused: false
}

// A third worker comes to a fleet of two, and gets one lease of each.
func ExampleView_Plan() {
	view := lease.View{
		Members: []lease.Member{{Name: "worker-1"}, {Name: "worker-2"}, {Name: "worker-3"}},
		Rows: []lease.Row{
			{Key: "shardId-000000000000", Owner: "worker-1"},
			{Key: "shardId-000000000001", Owner: "worker-1"},
			{Key: "shardId-000000000002", Owner: "worker-1"},
			{Key: "shardId-000000000003", Owner: "worker-2"},
			{Key: "shardId-000000000004", Owner: "worker-2"},
			{Key: "shardId-000000000005", Owner: "worker-2"},
		},
	}
	plan := view.Plan()
	fmt.Println(plan.Shares)
	for _, m := range plan.Moves {
		fmt.Println(m.Kind, m.Key, "from", m.From, "to", m.To)
	}
	// Output:
	// map[worker-1:2 worker-2:2 worker-3:2]
	// pass shardId-000000000002 from worker-1 to worker-3
	// pass shardId-000000000003 from worker-2 to worker-3
}

// An owner whose counter does not change for the failover time has lost its lease, by the
// observer's own clock.
func ExampleWatch_Update() {
	var watch lease.Watch
	leases := []lease.Lease{{Key: "shardId-000000000000", Owner: "worker-1", Counter: 7}}
	begin := time.Now()
	for _, after := range []time.Duration{0, 6 * time.Second, 12 * time.Second} {
		now := begin.Add(after)
		seen := watch.Update(now, leases)
		fmt.Println(after, seen[0].Expired(now, 10*time.Second))
	}
	// Output:
	// 0s false
	// 6s false
	// 12s true
}

// A person has deleted the lease of a child whose parent has ended.
func ExampleShardView_Missing() {
	view := lease.ShardView{
		Synced: true,
		Shards: []runnel.Shard{
			{ID: "shardId-000000000000", First: "1", Last: "9"},
			{ID: "shardId-000000000001", First: "1", Parents: []runnel.ShardID{"shardId-000000000000"}},
			{ID: "shardId-000000000002", First: "1", Parents: []runnel.ShardID{"shardId-000000000000"}},
		},
		Leases: []lease.Lease{
			{Key: "shardId-000000000000", Checkpoint: runnel.End()},
			{Key: "shardId-000000000001"},
		},
	}
	fmt.Println(view.Missing())
	// Output: [shardId-000000000002]
}

// A program with a failover time of its own waits for the longest one in the workers' rows.
func ExampleLongestFailover() {
	leases := []lease.Lease{
		{Key: "shardId-000000000000", Owner: "w1", Holder: "w1", Failover: 40 * time.Second},
		{Key: "shardId-000000000001", Owner: "java"}, // it says none
	}
	fmt.Println(max(10*time.Second, lease.LongestFailover(leases)))
	// Output: 40s
}
