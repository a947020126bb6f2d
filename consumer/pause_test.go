package consumer

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runnel-stream/runnel/lease"
)

// heldFor returns a keeper whose last write was so long ago, by the monotonic clock and by the wall
// clock.
func heldFor(monotonic, wall time.Duration) *keeper {
	r := &run{cfg: Config{Failover: 10 * time.Second}.withDefaults()}
	now := moment()
	return r.newKeeper(lease.Lease{}, instant{
		Time: now.Add(-monotonic), wall: now.wall.Add(-wall),
	})
}

// Before a batch the keeper says whether the lease is certainly held. A suspended machine shows
// only in the wall clock: the keeper then waits for a heartbeat.
func TestEnsure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			monotonic, wall time.Duration
			beat            bool // a heartbeat succeeds meanwhile
			want            error
		}{
			{8 * time.Second, 8 * time.Second, false, nil},
			{9 * time.Second, 9 * time.Second, false, ErrLeaseExpired},
			{20 * time.Second, 0, false, ErrLeaseExpired},
			{8 * time.Second, -time.Hour, false, nil}, // the clock was set back
			{time.Second, time.Hour, true, nil},       // it was set forward, or the machine slept
			{time.Second, time.Hour, false, context.DeadlineExceeded},
		} {
			k := heldFor(c.monotonic, c.wall)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			if c.beat {
				go func() {
					<-k.wake // it asks for one
					k.kept(lease.Lease{}, moment())
				}()
			}
			if err := k.ensure(ctx); !errors.Is(err, c.want) {
				t.Errorf("%s by the monotonic clock, %s by the wall clock: %v, want %v",
					c.monotonic, c.wall, err, c.want)
			}
			cancel()
		}
	})
}

// A reader whose subscription was taken over waits for a heartbeat before it subscribes again, since
// the one that took it may hold the lease. Without that, a lease that is certainly held is enough.
func TestHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			monotonic time.Duration
			taken     bool
			beat      bool
			want      error
		}{
			{time.Second, false, false, nil},
			{9 * time.Second, false, false, ErrLeaseExpired},
			{time.Second, true, true, nil},
			{time.Second, true, false, context.DeadlineExceeded},
		} {
			k := heldFor(c.monotonic, c.monotonic)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			if c.beat {
				go func() {
					<-k.wake
					k.kept(lease.Lease{}, moment())
				}()
			}
			if err := k.holds(ctx, c.taken); !errors.Is(err, c.want) {
				t.Errorf("held for %s, taken %v: %v, want %v", c.monotonic, c.taken, err, c.want)
			}
			cancel()
		}
	})
}
