// Package workermetrics puts the numbers of consumer.Status on a page of metrics. The commands that
// are workers of a fleet serve them.
package workermetrics

import (
	"iter"
	"time"

	"github.com/runnel-stream/runnel/consumer"
	"github.com/runnel-stream/runnel/internal/metricspage"
)

type (
	ofWorker = metricspage.Metric[consumer.Status]
	ofShard  = metricspage.Metric[shard]
)

// shard is the status of a shard at a time.
type shard struct {
	consumer.ShardStatus
	now time.Time
}

var fleet = []ofWorker{
	worker(metricspage.WorkerTotalLeases, true,
		"Leases of shards that are not processed to their end. Only on the pages of watchers.",
		func(s consumer.Status) float64 { return float64(s.TotalLeases) }),
	worker(metricspage.WorkerTotalShards, true,
		"These, and the shards that lack a lease. Only on the pages of watchers.",
		func(s consumer.Status) float64 { return float64(s.TotalShards) }),
	worker(metricspage.WorkerUnclaimedLeases, true,
		"Leases that could be read now without a live owner. Only on the pages of watchers.",
		func(s consumer.Status) float64 { return float64(s.UnclaimedLeases) }),
}

var own = []ofWorker{
	worker(metricspage.WorkerLeases, true, "Leases that this worker holds.",
		func(s consumer.Status) float64 { return float64(s.WorkerLeases) }),
	worker(metricspage.WorkerWatching, true, "1 if this worker watches the table for all.",
		func(s consumer.Status) float64 {
			if s.Watching {
				return 1
			}
			return 0
		}),
	worker(metricspage.WorkerRecords, false, "Records that were processed.",
		func(s consumer.Status) float64 { return float64(s.Records) }),
	worker(metricspage.WorkerBytes, false, "Bytes of data that were processed.",
		func(s consumer.Status) float64 { return float64(s.Bytes) }),
	worker(metricspage.WorkerRetries, false, "Attempts of the handler or the sink that failed.",
		func(s consumer.Status) float64 { return float64(s.Retries) }),
	worker(metricspage.WorkerThrottles, false, "Calls that were refused for coming too fast.",
		func(s consumer.Status) float64 { return float64(s.Throttles) }),
}

var retention = []ofWorker{
	worker(metricspage.WorkerRetentionSeconds, true, "The stream's retention period.",
		func(s consumer.Status) float64 { return float64(s.RetentionHours) * 3600 }),
}

var shards = []ofShard{
	held(metricspage.ShardBehindSeconds, true, "How far the reading is behind the tip.",
		func(s shard) float64 { return float64(s.MillisBehindLatest) / 1000 }),
	held(metricspage.ShardCheckpointAgeSeconds, true, "The time since the last checkpoint.",
		func(s shard) float64 { return s.CheckpointAge.Seconds() }),
	held(metricspage.ShardHandlerSeconds, false, "The time in calls of the handler or the sink.",
		func(s shard) float64 { return s.HandlerTime.Seconds() }),
	held(metricspage.ShardHandlerRunningSeconds, true,
		"For how long the oldest call runs that has not returned; 0 if none runs.",
		func(s shard) float64 {
			if s.HandlerSince.IsZero() {
				return 0
			}
			return s.now.Sub(s.HandlerSince).Seconds()
		}),
	held(metricspage.ShardRecords, false, "Records that were processed.",
		func(s shard) float64 { return float64(s.Records) }),
	held(metricspage.ShardBytes, false, "Bytes of data that were processed.",
		func(s shard) float64 { return float64(s.Bytes) }),
	held(metricspage.ShardRetries, false, "Attempts of the handler or the sink that failed.",
		func(s shard) float64 { return float64(s.Retries) }),
	held(metricspage.ShardThrottles, false, "Calls that were refused for coming too fast.",
		func(s shard) float64 { return float64(s.Throttles) }),
}

var state = []ofShard{
	held(metricspage.ShardState, true,
		"1 for the state of the shard: waiting, reading, paused, stopped or handing-over.",
		func(shard) float64 { return 1 }),
}

func worker(name string, gauge bool, help string, value func(consumer.Status) float64) ofWorker {
	return ofWorker{Name: name, Help: help, Gauge: gauge, Value: value}
}

func held(name string, gauge bool, help string, value func(shard) float64) ofShard {
	return ofShard{Name: name, Help: help, Gauge: gauge, Value: value}
}

// Add adds a worker's metrics to the page, which calls status whenever it is served. status returns
// false as long as there is no worker.
func Add(p *metricspage.Page, status func() (consumer.Status, bool)) {
	labels := []string{metricspage.StreamLabel, metricspage.AppLabel}
	each := func(is func(consumer.Status) bool) iter.Seq2[[]string, consumer.Status] {
		return func(yield func([]string, consumer.Status) bool) {
			if s, ok := status(); ok && is(s) {
				yield([]string{s.Stream, s.App}, s)
			}
		}
	}
	metricspage.AddLabelled(p, labels, fleet, each(func(s consumer.Status) bool {
		return s.Watching && !s.Looked.IsZero()
	}))
	metricspage.AddLabelled(p, labels, own, each(func(consumer.Status) bool { return true }))
	metricspage.AddLabelled(p, labels, retention, each(func(s consumer.Status) bool {
		return s.RetentionHours > 0
	}))
	ofShards := func(values func(consumer.Status, shard) []string) iter.Seq2[[]string, shard] {
		return func(yield func([]string, shard) bool) {
			s, ok := status()
			for i := 0; ok && i < len(s.Shards); i++ {
				of := shard{s.Shards[i], s.Time}
				ok = yield(values(s, of), of)
			}
		}
	}
	labels = append(labels, metricspage.ShardLabel)
	metricspage.AddLabelled(p, labels, shards, ofShards(func(s consumer.Status, of shard) []string {
		return []string{s.Stream, s.App, string(of.Shard)}
	}))
	labels = append(labels[:3:3], metricspage.StateLabel)
	metricspage.AddLabelled(p, labels, state, ofShards(func(s consumer.Status, of shard) []string {
		return []string{s.Stream, s.App, string(of.Shard), string(of.State)}
	}))
}
