package consumer

import (
	"slices"
	"strings"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/lease"
)

// unclaimedAgain is the time between two reports of shards that stay unclaimed.
const unclaimedAgain = 5 * time.Minute

// unclaimedFor is the number of failover times after which an unclaimed shard is reported. A fleet
// that starts or loses a worker leaves shards unclaimed for one or two.
const unclaimedFor = 3

// unclaimed is what a watcher knows of the shards that no worker may take, because all have reached
// their MaxLeases. Such a shard is not read, and nothing else would show that.
type unclaimed struct {
	since    map[runnel.ShardID]time.Time // the look that found it unclaimed first
	reported []runnel.ShardID
	at       time.Time // of the last report
}

// update takes the unclaimed shards of a plan. It returns the ones to report, and whether a report
// is due: when the reported ones change, and again after unclaimedAgain.
func (u *unclaimed) update(
	now time.Time, failover time.Duration, shards []runnel.ShardID,
) (report []runnel.ShardID, due bool) {
	before := u.since
	u.since = make(map[runnel.ShardID]time.Time, len(shards))
	for _, id := range shards {
		first, known := before[id]
		if !known {
			first = now
		}
		u.since[id] = first
		if now.Sub(first) >= unclaimedFor*failover {
			report = append(report, id)
		}
	}
	changed := !slices.Equal(report, u.reported)
	if !changed && (len(report) == 0 || now.Sub(u.at) < unclaimedAgain) {
		return nil, false
	}
	u.reported, u.at = report, now
	return report, true
}

// reportUnclaimed reports the shards that stay unread since no worker may take them. The watchers
// do that, since they alone look at the table all the time. With Once such a shard waits for its
// turn.
func (f *fleet) reportUnclaimed(now time.Time, plan lease.FleetPlan) {
	cfg := &f.run.cfg
	shards := plan.Unclaimed
	if !f.watching || f.run.once != nil {
		shards = nil
	}
	report, due := f.unclaimed.update(now, cfg.Failover, shards)
	if !due {
		return
	}
	if len(report) > 0 {
		cfg.Logger.Warn("shards are not read, since every worker has as many as its MaxLeases "+
			"allows: raise MaxLeases, or add workers", "worker", cfg.WorkerID, "stream", cfg.Stream,
			"table", f.run.table.Name(), "shards", fewShards(report), "count", len(report))
	} else if f.watching {
		cfg.Logger.Info("every shard has a worker again", "worker", cfg.WorkerID, "stream",
			cfg.Stream, "table", f.run.table.Name())
	}
	f.run.observe(Event{Kind: EventUnclaimed, Unclaimed: report})
}

// fewShards names the first few shards.
func fewShards(ids []runnel.ShardID) string {
	const few = 5
	names := make([]string, 0, few+1)
	for _, id := range ids[:min(len(ids), few)] {
		names = append(names, string(id))
	}
	if len(ids) > few {
		names = append(names, "…")
	}
	return strings.Join(names, " ")
}
