package deploy_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runnel-stream/runnel/consumer"
	"github.com/runnel-stream/runnel/internal/retry"
)

// condition is a state of a fleet that alarms.
type condition struct {
	name    string
	shards  int
	provoke func(f *fleet)
	rules   []string // of Prometheus, without the prefix Runnel
	alarms  []string // of CloudWatch
}

func slow(pause time.Duration) func(*consumer.Config) {
	return func(c *consumer.Config) {
		c.MaxRecords = 1
		c.Handler = func(ctx context.Context, _ *consumer.Batch) error { return retry.Wait(ctx, pause) }
	}
}

var conditions = []condition{
	{
		name: "a healthy fleet that gains a worker", shards: 4,
		provoke: func(f *fleet) {
			f.start()
			defer f.feed(500, 900, 100, 700)()
			f.pass(5 * time.Minute)
			f.start()
			f.pass(12 * time.Minute)
		},
	},
	{
		name: "too few workers", shards: 2,
		provoke: func(f *fleet) {
			f.start(slow(3 * feedEvery * time.Second))
			f.start(slow(3 * feedEvery * time.Second))
			defer f.feed(10, 10)()
			f.pass(22 * time.Minute)
		},
		rules: []string{"UnderProvisioned"}, alarms: []string{"UnderProvisioned"},
	},
	{
		name: "leases that no worker may hold", shards: 6,
		provoke: func(f *fleet) {
			few := func(c *consumer.Config) { c.MaxLeases = 2 }
			f.start(few)
			f.start(few)
			f.pass(20 * time.Minute)
		},
		rules: []string{"Churning"}, alarms: []string{"Churning"},
	},
	{
		name: "a hot shard", shards: 6,
		provoke: func(f *fleet) {
			f.start()
			f.start()
			defer f.feed(120<<10, 1<<10, 1<<10, 1<<10, 1<<10, 1<<10)()
			f.pass(25 * time.Minute)
		},
		rules: []string{"HotShard"}, alarms: []string{"HotShard"},
	},
	{
		name: "a lease that is missing", shards: 3,
		provoke: func(f *fleet) {
			var now atomic.Bool
			few := func(c *consumer.Config) {
				c.MaxLeases, c.DynamoDB = 1, denied{c.DynamoDB, &now}
			}
			f.start(few)
			f.start(few)
			f.pass(2 * time.Minute)
			now.Store(true)
			f.deleteLease()
			f.pass(20 * time.Minute)
		},
		rules: []string{"FewerLeasesThanShards"}, alarms: []string{"FewerLeasesThanShards"},
	},
	{
		name: "no worker", shards: 2,
		provoke: func(f *fleet) {
			a, b := f.start(), f.start()
			f.pass(5 * time.Minute)
			f.down(a)
			f.down(b)
			f.pass(15 * time.Minute)
		},
		rules: []string{"NoWorker"}, alarms: []string{"NoWorker"},
	},
	{
		name: "a shard that waits for more than half of the retention period", shards: 2,
		provoke: func(f *fleet) {
			rarely := func(c *consumer.Config) {
				c.PollInterval, c.Failover = 20*time.Second, 5*time.Minute
			}
			m := f.start(rarely)
			f.pass(time.Minute)
			m.Pause("shardId-000000000001")
			<-time.After(12 * time.Hour)
			f.pass(12 * time.Minute)
		},
		rules: []string{"NearRetention"}, alarms: []string{"NearRetention"},
	},
	{
		name: "a shard that has stopped", shards: 2,
		provoke: func(f *fleet) {
			var failed atomic.Bool
			f.start(func(c *consumer.Config) {
				c.OnError = consumer.ErrorPolicy{Attempts: 1, Then: consumer.ThenStop}
				c.Handler = func(context.Context, *consumer.Batch) error {
					if failed.Swap(true) {
						return nil
					}
					return errors.New("bad record")
				}
			})
			defer f.feed(10, 10)()
			f.pass(15 * time.Minute)
		},
		rules: []string{"ShardStopped"},
	},
}

// TestAlarms provokes the condition of each alarm on a real fleet. The metrics that its workers
// serve and send raise that alarm, of Prometheus and of CloudWatch, and no other one.
func TestAlarms(t *testing.T) {
	if underRace {
		t.Skip("SKIP: nine fleets in virtual time take minutes; consumer's tests race the same code")
	}
	template := readTemplate(t)
	var rules []ruleTest
	seen := map[string]bool{}
	for _, c := range conditions {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFleet(t, c.shards)
				c.provoke(f)
				now := time.Now()
				if got := template.alarming(t, f.published(), now); !slices.Equal(got, c.alarms) {
					t.Errorf("CloudWatch has the alarms %q, want %q", got, c.alarms)
				}
				if !metricsShow(f, c.rules) {
					t.Errorf("the pages do not show %q", c.rules)
				}
				rules = append(rules, f.ruleTest(c))
				f.close()
			})
		})
		for _, name := range append(slices.Clone(c.alarms), c.rules...) {
			seen[name] = true
		}
	}
	for name := range template.alarms {
		if !seen[name] {
			t.Errorf("no condition raises CloudWatch's alarm %s", name)
		}
	}
	for _, name := range ruleNames(t) {
		if !seen[name] {
			t.Errorf("no condition raises the rule Runnel%s", name)
		}
	}
	t.Run("promtool", func(t *testing.T) { runRuleTests(t, rules) })
}
