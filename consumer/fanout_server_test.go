package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
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
func (l *ledger) member(
	group *sync.WaitGroup, id string, change ...func(*consumer.Config),
) (stop func()) {
	l.Helper()
	w := l.worker(id, append(change, byFanout)...)
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
	minutes, seeds := 12, max(1, soak()/10)
	if underRace {
		minutes = 3
	}
	for seed := range seeds {
		for _, grows := range []bool{false, true} {
			t.Run(fmt.Sprintf("seed %d, a fleet that grows %v", seed, grows), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					renew(t, minutes, seed, grows, 2*time.Second, runneltest.InMemory())
				})
			})
		}
	}
	t.Logf("soak: %d times %d minutes", 2*seeds, minutes)
}

// The same in real time, over HTTP/2. A busy machine delays heartbeats, and a handler gets records
// again when a lease expires, so the failover time is longer.
func TestFanoutRenewalsInRealTime(t *testing.T) {
	minutes, err := strconv.Atoi(os.Getenv("RUNNEL_FANOUT_MINUTES"))
	if err != nil {
		t.Skip("RUNNEL_FANOUT_MINUTES=12 runs it for so long")
	}
	for _, grows := range []bool{false, true} {
		t.Run(fmt.Sprintf("a fleet that grows %v", grows), func(t *testing.T) {
			renew(t, minutes, 0, grows, 10*time.Second, runneltest.WithTLS())
		})
	}
}

func renew(
	t *testing.T, minutes, seed int, grows bool, failover time.Duration, network runneltest.Option,
) {
	server := runneltest.NewServer(t, network, runneltest.WithStream("orders", 4),
		runneltest.WithFaults(fmt.Sprintf("seed=%d SubscribeToShard:cut-stream%%30", seed)))
	l := newLedger(t, server)
	var group sync.WaitGroup
	patient := func(c *consumer.Config) { c.Failover = failover }
	stops := []func(){l.member(&group, "w1", patient)}
	for i := range minutes * 60 * 2 {
		l.send(3)
		if i%20 == 10 {
			l.reshard(i/20, i/20%2 == 1)
		}
		switch {
		case grows && i%120 == 60:
			stops = append(stops, l.member(&group, fmt.Sprint("w", i), patient))
		case grows && i%120 == 119:
			stops[0]()
			stops = stops[1:]
		}
		<-time.After(500 * time.Millisecond)
	}
	l.await(time.Minute)
	renewals := l.renewals()
	t.Logf("%d records, %d again, %d renewals, %d leases expired, faults %v", l.total, l.again,
		renewals, len(l.happened(consumer.EventLeaseExpired)), server.FaultCounts())
	if l.again > 0 || renewals < 20*minutes/12 {
		t.Errorf("%d records came again, and there were %d renewals", l.again, renewals)
	}
	for _, stop := range stops {
		stop()
	}
	group.Wait()
}

// Over TLS a worker reads by HTTP/2, all shards by one connection, and goes on after a cut.
func TestFanoutOverTLS(t *testing.T) {
	l := newLedger(t, runneltest.NewServer(t, runneltest.WithTLS(),
		runneltest.WithStream("orders", 4), runneltest.WithStreamDelay(-1),
		runneltest.WithFaults("SubscribeToShard:cut-stream=1s@2")))
	var group sync.WaitGroup
	stop := l.member(&group, "w1")
	for range 40 {
		l.send(50)
		<-time.After(50 * time.Millisecond)
	}
	l.awaitEvents(consumer.EventSubscribed, 5, 30*time.Second)
	l.send(50)
	l.await(30 * time.Second)
	l.exactly()
	if renewals := l.renewals(); renewals != 1 {
		t.Errorf("%d renewals", renewals)
	}
	stop()
	group.Wait()
}
