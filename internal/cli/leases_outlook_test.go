package cli

import (
	"slices"
	"testing"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/lease"
)

var outlookNow = time.UnixMilli(1_700_000_000_000).UTC()

// measuredLease is a held lease: behind in seconds, rates in KiB/s, its worker busy for a share of
// the time.
func measuredLease(key, owner string, behind, ingest, rate int64, busy float64) lease.Lease {
	return lease.Lease{
		Key: runnel.ShardID(key), Owner: owner, Holder: owner, Hold: "h",
		Stats: lease.Stats{
			At: outlookNow.Add(-2 * time.Second), Behind: time.Duration(behind) * time.Second,
			Rate: rate << 10, Ingest: ingest << 10, Busy: busy,
		},
		ThroughputKBps: float64(rate),
	}
}

// several returns n leases of one worker.
func several(n int, owner string, behind, ingest, rate int64, busy float64) []lease.Lease {
	var leases []lease.Lease
	for i := range n {
		key := owner + "-" + string(rune('a'+i))
		leases = append(leases, measuredLease(key, owner, behind, ingest, rate, busy))
	}
	return leases
}

// TestOutlook has the model's cases.
func TestOutlook(t *testing.T) {
	ended := lease.Lease{Key: "ended", Checkpoint: runnel.End()}
	java := lease.Lease{Key: "java", Owner: "java", ThroughputKBps: 100}
	fresh := lease.Lease{Key: "fresh", Owner: "w1", Holder: "w1", Hold: "h"}
	dead := measuredLease("dead", "gone", 0, 100, 100, 1)
	dead.Stats.At = outlookNow.Add(-5 * time.Minute)
	waiting := lease.Lease{Key: "child", Parents: []runnel.ShardID{"w1-a"}}
	const never = -1
	for _, c := range []struct {
		what    string
		leases  []lease.Lease
		desired int
		gone    time.Duration
		workers int
	}{
		{"nothing", nil, 0, 0, 0},
		{"all shards have ended", []lease.Lease{ended}, 0, 0, 0},
		{"an idle fleet", slices.Concat(several(4, "w1", 0, 0, 0, 0), several(4, "w2", 0, 0, 0, 0)), 1, 0, 2},
		{
			"two workers, each busy for a quarter of the time",
			slices.Concat(several(4, "w1", 0, 10, 10, .25), several(4, "w2", 0, 10, 10, .25)), 1, 0, 2,
		},
		{
			"two workers, each busy for three quarters",
			slices.Concat(several(4, "w1", 0, 10, 10, .75), several(4, "w2", 0, 10, 10, .75)), 2, 0, 2,
		},
		{
			// 800 KiB/s arrive, a worker does 400: two for these, and 800 x 600 s of backlog in 600 s
			// take two more.
			"one worker that falls behind", several(8, "w1", 600, 100, 50, 1), 4, never, 1,
		},
		{
			"a backlog that one worker empties in 400 s", several(2, "w1", 400, 50, 100, 1), 1,
			400 * time.Second, 1,
		},
		{
			"too many bytes for the shards that there are", several(2, "w1", 86_400, 100, 50, 1), 2,
			never, 1,
		},
		{
			// The dead worker's shard is 5 min behind by now.
			"a dead worker", slices.Concat(several(1, "w1", 0, 100, 100, .5), []lease.Lease{dead}), 2,
			never, 1,
		},
		{
			"a new lease counts as an average one",
			slices.Concat(several(1, "w1", 0, 100, 100, .5), []lease.Lease{fresh}), 1, 0, 1,
		},
		{"no rate yet", []lease.Lease{fresh}, 1, 0, 0},
		{"a Java worker alone", []lease.Lease{java}, 1, 0, 1},
		{
			"a child that waits takes no worker",
			slices.Concat(several(1, "w1", 600, 100, 100, 1), []lease.Lease{waiting}), 1, never, 1,
		},
		{
			// Three shards of 60 each and workers of 100: no two shards fit one worker.
			"shards are not divided",
			slices.Concat(several(1, "w1", 0, 60, 60, .6), several(1, "w2", 0, 60, 60, .6),
				several(1, "w3", 0, 60, 60, .6)), 3, 0, 3,
		},
	} {
		o := outlookOf(c.leases, outlookNow, 10*time.Minute)
		gone := o.gone
		if gone > 0 {
			gone = gone.Round(time.Second)
		}
		if o.desired != c.desired || gone != c.gone || o.workers != c.workers {
			t.Errorf("%s: %d workers wanted, gone in %s, %d there; want %d, %s, %d\n%+v", c.what,
				o.desired, o.gone, o.workers, c.desired, c.gone, c.workers, o)
		}
	}
}

// A shard that needs more than one worker's rate is named, and asks for no more workers than one.
func TestOutlookOfAHotShard(t *testing.T) {
	leases := slices.Concat(several(7, "w1", 0, 1, 1, .1),
		[]lease.Lease{measuredLease("hot", "w2", 600, 100, 50, 1)})
	o := outlookOf(leases, outlookNow, 10*time.Minute)
	if !slices.Equal(o.hot, []runnel.ShardID{"hot"}) || o.desired != 2 || o.furthest != "hot" {
		t.Errorf("%+v", o)
	}
}

// The number never exceeds the shards, never is below 1, and falls with more time.
func TestOutlookBounds(t *testing.T) {
	for behind := int64(0); behind < 100_000; behind = behind*3 + 7 {
		for _, ingest := range []int64{0, 1, 50, 1000} {
			last := 1 << 30
			for _, within := range []time.Duration{time.Second, time.Minute, time.Hour, 1000 * time.Hour} {
				leases := slices.Concat(several(5, "w1", behind, ingest, 40, 1), several(6, "w2", 0, 7, 7, .5))
				o := outlookOf(leases, outlookNow, within)
				if o.desired < 1 || o.desired > 11 || o.desired > last {
					t.Errorf("behind %d, ingest %d, within %s: %d workers after %d", behind, ingest,
						within, o.desired, last)
				}
				last = o.desired
			}
		}
	}
}
