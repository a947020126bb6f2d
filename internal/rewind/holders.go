package rewind

import (
	"context"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/retry"
	"github.com/runnel-stream/runnel/lease"
)

// Holders returns the workers that are alive and hold leases, with these. Workers write each lease
// at least once in the failover time, so without such a write in a little more than that, the
// owners are gone. After the first write Holders waits for those of the other owners: they come
// within half of the failover time.
func Holders(
	ctx context.Context, table *lease.Table, failover time.Duration,
) (map[string][]runnel.ShardID, error) {
	first, _, err := table.List(ctx)
	if err != nil {
		return nil, err
	}
	before, owned := lease.ByKey(first), false
	for _, l := range first {
		owned = owned || l.Owner != "" && !l.Ended()
	}
	live := map[string]bool{}
	var now []lease.Lease
	for end := time.Now().Add(failover + failover/10); owned && time.Now().Before(end); {
		if err := retry.Wait(ctx, failover/10); err != nil {
			return nil, err
		}
		if now, _, err = table.List(ctx); err != nil {
			return nil, err
		}
		none := len(live) == 0
		for _, l := range now {
			seen, known := before[l.Key]
			if l.Owner != "" && (!known || l.Counter != seen.Counter || l.Owner != seen.Owner) {
				live[l.Owner] = true
			}
		}
		if rest := time.Now().Add(failover * 6 / 10); none && len(live) > 0 && rest.Before(end) {
			end = rest
		}
	}
	return heldBy(now, live), nil
}

func heldBy(leases []lease.Lease, live map[string]bool) map[string][]runnel.ShardID {
	held := map[string][]runnel.ShardID{}
	for _, l := range leases {
		if live[l.Owner] {
			held[l.Owner] = append(held[l.Owner], l.Key)
		}
	}
	return held
}
