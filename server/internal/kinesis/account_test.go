package kinesis

import (
	"fmt"
	"testing"
	"time"

	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/server/internal/limit"
)

// The commitment lasts for at least 24 hours, and a scheduled end takes effect by itself.
func TestCommitment(t *testing.T) {
	clock := newTestClock()
	n := newNode(t, at(clock))
	const start = 1772366400 // the clock's, in seconds
	text := func(answer m) string {
		c := answer["MinimumThroughputBillingCommitment"].(m)
		got := fmt.Sprint(c["Status"])
		for _, name := range []string{"StartedAt", "EarliestAllowedEndAt", "EndedAt"} {
			if at, ok := c[name].(float64); ok {
				got += fmt.Sprintf(" %s+%vh", name, (at-start)/3600)
			}
		}
		return got
	}
	step := func(wait time.Duration, status, want string) {
		t.Helper()
		clock.advance(wait)
		if status != "" {
			out := n.call("UpdateAccountSettings",
				m{"MinimumThroughputBillingCommitment": m{"Status": status}})
			if got := text(out); got != want {
				t.Errorf("%s is answered with %s, want %s", status, got, want)
			}
		}
		if got := text(n.call("DescribeAccountSettings", m{})); got != want {
			t.Errorf("the account is %s, want %s", got, want)
		}
	}
	step(0, "", "DISABLED")
	step(0, "DISABLED", "DISABLED")
	step(0, "ENABLED", "ENABLED StartedAt+0h EarliestAllowedEndAt+24h")
	step(time.Hour, "ENABLED", "ENABLED StartedAt+0h EarliestAllowedEndAt+24h")
	const ending = "ENABLED_UNTIL_EARLIEST_ALLOWED_END StartedAt+0h EarliestAllowedEndAt+24h"
	step(time.Hour, "DISABLED", ending)
	step(time.Hour, "ENABLED", "ENABLED StartedAt+0h EarliestAllowedEndAt+24h")
	step(time.Hour, "DISABLED", ending)
	n.stop()
	n = startNode(t, n.fs, at(clock))
	step(20*time.Hour-time.Millisecond, "DISABLED", ending)
	n.world = wire.World{Account: here.Account, Region: "eu-west-1"}
	step(0, "", "DISABLED")
	n.world = here
	step(time.Millisecond, "", "DISABLED StartedAt+0h EndedAt+24h")
	step(time.Hour, "ENABLED", "ENABLED StartedAt+25h EarliestAllowedEndAt+49h")
	step(30*time.Hour, "DISABLED", "DISABLED StartedAt+25h EndedAt+55h")
}

func TestDescribeLimits(t *testing.T) {
	n := newNode(t)
	limits := func(want string) {
		t.Helper()
		if got := fmt.Sprint(n.call("DescribeLimits", m{})); got != want {
			t.Errorf("the limits are %s, want %s", got, want)
		}
	}
	limits("map[OnDemandStreamCount:0 OnDemandStreamCountLimit:50 OpenShardCount:0 ShardLimit:20000]")
	n.create("orders", 3)
	n.call("CreateStream", m{"StreamName": "events"})
	n.call("SplitShard", m{"StreamName": "orders", "ShardToSplit": "0", "NewStartingHashKey": "77"})
	n.create("gone", 9)
	n.call("DeleteStream", m{"StreamName": "gone"})
	limits("map[OnDemandStreamCount:1 OnDemandStreamCountLimit:50 OpenShardCount:4 ShardLimit:20000]")
	n.world.Region = "eu-central-1"
	limits("map[OnDemandStreamCount:0 OnDemandStreamCountLimit:50 OpenShardCount:0 ShardLimit:1000]")
	plan, err := limit.Parse("shards=7,on-demand-streams=1")
	n.must(err)
	n = newNode(t, func(cfg *Config) { cfg.Limits = plan })
	limits("map[OnDemandStreamCount:0 OnDemandStreamCountLimit:1 OpenShardCount:0 ShardLimit:7]")
}
