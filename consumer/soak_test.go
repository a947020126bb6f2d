package consumer_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/consumer"
)

// A fleet lives through an hour of splits, merges, kills, stops, cut networks, lost answers,
// throttles, expired iterators and slow handlers: every record is delivered, each shard's in
// order, parents before children.
func TestFleetSurvives(t *testing.T) {
	for i := range 4 * soak() {
		seed := uint64(i + 1)
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			bubble(t, 4, func(f *fleet) { survive(f, seed) })
		})
	}
	t.Logf("soak: %d seeds", 4*soak())
}

// chaos is a seeded source of faults, safe for concurrent use.
type chaos struct {
	mu     sync.Mutex
	random *rand.Rand
	calm   bool
}

func (c *chaos) chance(percent int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.calm && c.random.IntN(100) < percent
}

func (c *chaos) pick(n int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.random.IntN(n)
}

func survive(f *fleet, seed uint64) {
	c := &chaos{random: rand.New(rand.NewPCG(seed, 1))}
	f.stream.atEndOnly = c.chance(50)
	f.stream.fault = func(op string, _ runnel.ShardID) error {
		switch {
		case op == "GetRecords" && c.chance(2):
			return &types.ExpiredIteratorException{}
		case op == "GetRecords" && c.chance(2):
			return &types.ProvisionedThroughputExceededException{}
		case c.chance(1):
			return errCut
		}
		return nil
	}
	workers, puts := 0, 0
	start := func() *member {
		workers++
		return f.start(fmt.Sprintf("w%d", workers), func(cfg *consumer.Config) {
			cfg.MaxRecords = 7
			cfg.AuditInterval = 30 * time.Second
			cfg.Handler = func(ctx context.Context, b *consumer.Batch) error {
				if c.chance(1) {
					select {
					case <-ctx.Done():
						return ctx.Err()
					case <-time.After(time.Duration(c.pick(20)) * time.Second):
					}
				}
				if c.chance(1) {
					return errCut
				}
				f.record(b.Records)
				return nil
			}
			l := cfg.DynamoDB.(*link)
			l.before = func(context.Context, string) error {
				if c.chance(1) {
					return errCut
				}
				return nil
			}
			l.after = l.before
		})
	}
	live := []*member{start(), start(), start()}
	for range 120 {
		puts += len(f.stream.put("x", keys(1+c.pick(30))...))
		switch i := c.pick(len(live)); c.pick(12) {
		case 0:
			f.stream.split(c.pick(100))
		case 1, 2:
			f.stream.merge(c.pick(100))
		case 3:
			live[i].kill()
			<-live[i].err
			live[i] = start()
		case 4:
			live[i].stop()
			<-live[i].err
			live[i] = start()
		case 5:
			if mend := live[i].link.cut(); true {
				defer mend()
				live[i].stop() // in vain: it can reach no other worker
				<-live[i].err
				live[i] = start()
			}
		}
		<-time.After(time.Duration(c.pick(30_000)) * time.Millisecond)
	}
	c.mu.Lock()
	c.calm = true
	c.mu.Unlock()
	f.await(20*failover, fmt.Sprintf("%d records (seed %d)", puts, seed), func() bool {
		n, _ := f.delivered()
		return n == puts
	})
	records, again := f.delivered()
	f.Logf("seed %d: %d shards, %d workers, %d records, %d deliveries repeated", seed,
		len(f.stream.shards), workers, records, again)
}

// The leases of ended shards name their children. These leases exist, and the ended ones have no
// owner.
func TestEndedLeases(t *testing.T) {
	bubble(t, 3, func(f *fleet) {
		f.start("w1")
		f.start("w2")
		f.await(4*failover, "shares", func() bool { return slices.Equal(f.spread(), []int{1, 2}) })
		f.stream.put("a", keys(30)...)
		f.stream.split(1)
		f.stream.merge(0)
		f.stream.put("b", keys(30)...)
		took := f.await(failover, "60 records", func() bool { n, _ := f.delivered(); return n == 60 })
		if took > time.Second {
			// A worker takes the children of shards that it has ended without a look at the table.
			f.Logf("children started after %s", took)
		}
		byKey := map[runnel.ShardID]bool{}
		for _, l := range f.leases() {
			byKey[l.Key] = true
		}
		ended := 0
		f.await(failover, "3 ended leases", func() bool {
			ended = 0
			for _, l := range f.leases() {
				if l.Ended() {
					ended++
				}
			}
			return ended == 3
		})
		for _, l := range f.leases() {
			if !l.Ended() {
				continue
			}
			if l.Owner != "" || len(l.Children) == 0 {
				t.Errorf("ended: %+v", l)
			}
			for _, child := range l.Children {
				if !byKey[child] {
					t.Errorf("%s became %s, which has no lease", l.Key, child)
				}
			}
		}
	})
}

// Records that retention removed before they were read are reported, and so is a shard that
// was removed altogether; reading goes on behind them.
func TestTrimmed(t *testing.T) {
	bubble(t, 1, func(f *fleet) {
		m := f.start("w1")
		f.stream.put("a", keys(10)...)
		f.await(time.Second, "10 records", func() bool { n, _ := f.delivered(); return n == 10 })
		m.stop()
		<-m.err
		f.stream.put("b", keys(10)...)
		f.stream.shards[0].trimmed = 15
		var got int
		count := func(c *consumer.Config) {
			c.Handler = func(_ context.Context, b *consumer.Batch) error {
				f.mu.Lock()
				defer f.mu.Unlock()
				got += len(b.Records)
				return nil
			}
		}
		m = f.start("w2", count)
		<-time.After(time.Second)
		trimmed := f.happened(consumer.EventTrimmed)
		if got != 5 || len(trimmed) != 1 ||
			string(trimmed[0].Position.Sequence) != *f.stream.shards[0].records[9].SequenceNumber {
			t.Errorf("got %d, trimmed %+v", got, trimmed)
		}
		m.stop()
		<-m.err
		f.stream.split(0)
		f.stream.put("c", keys(10)...)
		f.stream.shards[0].unlisted = true
		f.start("w3", count)
		f.await(failover, "the children", func() bool {
			f.mu.Lock()
			defer f.mu.Unlock()
			return got == 15
		})
		if n := len(f.happened(consumer.EventTrimmed)); n != 2 {
			t.Errorf("%d trimmed", n)
		}
	})
}

// Leases that were deleted by hand are found by the audit, and an ended lease goes when two
// audits do not find its shard.
func TestAudit(t *testing.T) {
	bubble(t, 1, func(f *fleet) {
		f.start("w1")
		f.stream.put("a", keys(10)...)
		f.stream.split(0)
		f.stream.put("b", keys(10)...)
		f.await(failover, "20 records", func() bool { n, _ := f.delivered(); return n == 20 })
		<-time.After(failover)
		child, err := f.leaseTable().Get(f.Context(), f.stream.shards[2].id)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.leaseTable().Delete(f.Context(), child); err != nil {
			t.Fatal(err)
		}
		f.await(3*time.Minute, "the lease to come back", func() bool {
			l, err := f.leaseTable().Get(f.Context(), child.Key)
			return err == nil && l.Owner == "w1"
		})
		f.stream.shards[0].unlisted = true
		<-time.After(time.Minute)
		if n := len(f.leases()); n != 3 {
			t.Errorf("%d leases, want 3", n)
		}
		f.await(5*time.Minute, "the old lease to go", func() bool { return len(f.leases()) == 2 })
	})
}
