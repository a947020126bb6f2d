package rewind

import (
	"context"
	"fmt"
	"time"

	"github.com/runnel-stream/runnel/internal/retry"
	"github.com/runnel-stream/runnel/lease"
)

// Refuse returns ErrSink if a row says that its worker has a sink: a sink's position is the truth,
// and the row only follows it.
func Refuse(leases []lease.Lease) error {
	for _, l := range leases {
		if l.Token != "" || l.Sink {
			return fmt.Errorf("shard %s: %w", l.Key, ErrSink)
		}
	}
	return nil
}

// RefuseJava returns ErrJava if a Java worker holds a lease and lives. If a row names one, it waits
// until that writes a row, for a little longer than the failover time, or than the longest one that
// a row says.
func RefuseJava(ctx context.Context, table *lease.Table, failover time.Duration) error {
	var watch lease.Watch
	for began := time.Now(); ; {
		leases, _, err := table.List(ctx)
		if err != nil {
			return err
		}
		watch.Update(time.Now(), leases)
		failover = max(failover, lease.LongestFailover(leases))
		java := false
		for _, l := range leases {
			if l.Owner == "" || l.Owned() {
				continue
			}
			if java = true; watch.Alive(l.Owner) {
				return fmt.Errorf("shard %s: %w: %s", l.Key, ErrJava, l.Owner)
			}
		}
		if !java || time.Since(began) > failover+failover/10 {
			return nil
		}
		if err := retry.Wait(ctx, failover/10); err != nil {
			return err
		}
	}
}
