package rewind

import (
	"context"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/retry"
	"github.com/runnel-stream/runnel/lease"
)

// Holders returns the workers that are alive, with the leases that they hold. Workers write each
// lease, or their card if they have none, at least once in the failover time, so without such a
// write in a little more than that, the workers are gone. The longest failover time that a row says
// counts if it is above the given one. After the first write Holders waits for
// those of the others: they come within half of the failover time.
func Holders(
	ctx context.Context, table *lease.Table, failover time.Duration,
) (map[string][]runnel.ShardID, error) {
	var watch lease.Watch
	leases, _, err := table.List(ctx)
	if err != nil {
		return nil, err
	}
	watch.Update(time.Now(), leases)
	failover = max(failover, lease.LongestFailover(leases))
	names := named(leases)
	live := map[string][]runnel.ShardID{}
	for end := time.Now().Add(failover + failover/10); time.Now().Before(end); {
		if len(names) == 0 && len(live) == 0 {
			return nil, nil // no row names a worker
		}
		if err := retry.Wait(ctx, failover/10); err != nil {
			return nil, err
		}
		if leases, _, err = table.List(ctx); err != nil {
			return nil, err
		}
		watch.Update(time.Now(), leases)
		names = named(leases)
		none := len(live) == 0
		for name := range names {
			if watch.Alive(name) {
				live[name] = nil
			}
		}
		if rest := time.Now().Add(failover * 6 / 10); none && len(live) > 0 && rest.Before(end) {
			end = rest
		}
	}
	for name := range live {
		live[name] = names[name]
	}
	return live, nil
}

// named returns the workers that the rows name, with the leases that they hold.
func named(leases []lease.Lease) map[string][]runnel.ShardID {
	names := map[string][]runnel.ShardID{}
	for _, l := range leases {
		if l.Owner != "" && !l.Ended() {
			names[l.Owner] = append(names[l.Owner], l.Key)
		}
		for name := range l.Cards {
			if _, there := names[name]; !there {
				names[name] = nil // it holds none
			}
		}
	}
	return names
}
