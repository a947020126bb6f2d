package cli

import (
	"fmt"
	"iter"
	"sync/atomic"
	"time"

	"github.com/runnel-stream/runnel/internal/console"
	"github.com/runnel-stream/runnel/internal/metricspage"
	"github.com/runnel-stream/runnel/internal/streamref"
	"github.com/runnel-stream/runnel/sink/rollup"
)

// rollupCounts are the counts of a rollup.
type rollupCounts struct {
	workerCounts
	records, bad, rows, batches, retries atomic.Int64
}

// committed counts a batch.
func (n *rollupCounts) committed(c rollup.Commit) {
	n.records.Add(int64(c.Records))
	n.bad.Add(int64(c.Bad))
	n.rows.Add(int64(c.Rows))
	n.batches.Add(1)
}

// rollupMetrics are the metrics of a rollup.
var rollupMetrics = []metricspage.Metric[*rollupCounts]{
	rollupMetric(metricspage.RollupRecords, "Records of committed batches, bad ones included.",
		func(n *rollupCounts) *atomic.Int64 { return &n.records }),
	rollupMetric(metricspage.RollupBad, "Records that could not be folded.",
		func(n *rollupCounts) *atomic.Int64 { return &n.bad }),
	rollupMetric(metricspage.RollupRows, "Rows that were inserted or changed.",
		func(n *rollupCounts) *atomic.Int64 { return &n.rows }),
	rollupMetric(metricspage.RollupBatches, "Batches that were committed.",
		func(n *rollupCounts) *atomic.Int64 { return &n.batches }),
	rollupMetric(metricspage.RollupRetries, "Attempts at a batch that failed.",
		func(n *rollupCounts) *atomic.Int64 { return &n.retries }),
	rollupMetric(metricspage.RollupDoublesDropped,
		"Records that were dropped because their first copy was folded.",
		func(n *rollupCounts) *atomic.Int64 { return &n.doubles }),
	rollupMetric(metricspage.RollupVoidSkipped, "Records of void aggregates that were skipped.",
		func(n *rollupCounts) *atomic.Int64 { return &n.voided }),
	rollupMetric(metricspage.RollupVoidTaken, "Records of void aggregates that were folded.",
		func(n *rollupCounts) *atomic.Int64 { return &n.voidTaken }),
	rollupMetric(metricspage.RollupGaps,
		"Places where the stream removed records before they were read.",
		func(n *rollupCounts) *atomic.Int64 { return &n.gaps }),
	gauge(rollupMetric(metricspage.RollupUnclaimed, unclaimedHelp,
		func(n *rollupCounts) *atomic.Int64 { return &n.unclaimed })),
	rollupMetric(metricspage.RollupTakeovers, "Shards that were taken from dead workers.",
		func(n *rollupCounts) *atomic.Int64 { return &n.takeovers }),
}

func rollupMetric(
	name, help string, of func(*rollupCounts) *atomic.Int64,
) metricspage.Metric[*rollupCounts] {
	return metricspage.Metric[*rollupCounts]{
		Name: name, Help: help, Value: func(n *rollupCounts) float64 {
			return float64(of(n).Load())
		},
	}
}

// rollupPage returns the page of a rollup's metrics.
func rollupPage(n *rollupCounts, stream string) *metricspage.Page {
	page := metricspage.New()
	metricspage.AddEach(page, metricspage.StreamLabel, rollupMetrics,
		func() iter.Seq2[string, *rollupCounts] {
			return func(yield func(string, *rollupCounts) bool) { yield(stream, n) }
		})
	return page
}

// rollupLine is the progress of a rollup.
func rollupLine(stream string, n *rollupCounts, start time.Time) string {
	stream = streamref.Name(stream)
	line := fmt.Sprintf("rollup of %s: %s records, %s/s, in %s batches, %s rows written, "+
		"%s doubles dropped, %d shards begun, %d taken over", stream,
		console.Thousands(n.records.Load()),
		console.Thousands(console.Rate(n.records.Load(), time.Since(start))),
		console.Thousands(n.batches.Load()), console.Thousands(n.rows.Load()),
		console.Thousands(n.doubles.Load()), n.shards.Load(), n.takeovers.Load())
	if bad := n.bad.Load(); bad > 0 {
		line += fmt.Sprintf(", %s bad records", console.Thousands(bad))
	}
	line += n.voidCounts()
	if gaps := n.gaps.Load(); gaps > 0 {
		line += fmt.Sprintf(", %d gaps, where the stream removed records before they were read",
			gaps)
	}
	return line
}
