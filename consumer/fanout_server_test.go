package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runnel-stream/runnel/consumer"
	"github.com/runnel-stream/runnel/internal/seam"
	"github.com/runnel-stream/runnel/runneltest"
)

func byFanout(c *consumer.Config) { c.Fanout = &consumer.Fanout{} }

// renewals counts the subscriptions after the first one of each shard and worker, and fails if a
// worker polls.
func (l *ledger) renewals() (renewals int) {
	l.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	begun := map[string]bool{}
	for _, e := range l.events {
		key := fmt.Sprint(e.Worker, e.ShardID)
		switch e.Kind {
		case consumer.EventShardStarted:
			delete(begun, key)
		case consumer.EventSubscribed:
			if begun[key] {
				renewals++
			}
			begun[key] = true
		case consumer.EventPolling:
			l.Errorf("%s polls %s: %v", e.Worker, e.ShardID, e.Err)
		}
	}
	return renewals
}

// member runs a worker by enhanced fan-out, until the returned function stops it.
func (l *ledger) member(group *sync.WaitGroup, id string) (stop func()) {
	l.Helper()
	w := l.worker(id, byFanout)
	life, end := context.WithCancelCause(l.Context())
	var own sync.WaitGroup
	own.Add(1)
	group.Go(func() {
		defer own.Done()
		if err := w.Run(life); err != nil && !errors.Is(err, seam.ErrKilled) {
			l.Errorf("%s: %v", id, err)
		}
	})
	return func() {
		end(nil)
		done := make(chan struct{})
		go func() { own.Wait(); close(done) }()
		<-done
	}
}

// A worker reads by enhanced fan-out for twelve minutes, over cut streams, renewals and a reshard
// every ten seconds: no record is lost and none comes twice. The same holds for a fleet that grows
// and shrinks. (Under the race detector, which is slow, three minutes.)
func TestFanoutRenewals(t *testing.T) {
	minutes := 12 * soak()
	if underRace {
		minutes = 3 * soak()
	}
	for _, grows := range []bool{false, true} {
		t.Run(fmt.Sprint("a fleet that grows ", grows), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := runneltest.NewServer(t, runneltest.InMemory(),
					runneltest.WithStream("orders", 4),
					runneltest.WithFaults("seed=3 SubscribeToShard:cut-stream%30"))
				l := newLedger(t, server)
				var group sync.WaitGroup
				stops := []func(){l.member(&group, "w1")}
				for i := range minutes * 60 * 2 {
					l.send(3)
					if i%20 == 10 {
						l.reshard(i/20, i/20%2 == 1)
					}
					switch {
					case grows && i%120 == 60:
						stops = append(stops, l.member(&group, fmt.Sprint("w", i)))
					case grows && i%120 == 119:
						stops[0]()
						stops = stops[1:]
					}
					<-time.After(500 * time.Millisecond)
				}
				l.await(time.Minute)
				renewals := l.renewals()
				t.Logf("%d records, %d again, %d renewals, faults %v", l.total, l.again, renewals,
					server.FaultCounts())
				if l.again > 0 || renewals < 20*minutes/12 {
					t.Errorf("%d records came again, and there were %d renewals", l.again, renewals)
				}
				for _, stop := range stops {
					stop()
				}
				group.Wait()
			})
		})
	}
}
