package cli

import (
	"context"
	"iter"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/runnel-stream/runnel/internal/console"
	"github.com/runnel-stream/runnel/internal/metricspage"
	"github.com/runnel-stream/runnel/internal/origin"
)

// archiveMetrics are the metrics of an archive worker.
var archiveMetrics = []metricspage.Metric[*archiveCounts]{
	archiveMetric(metricspage.ArchiveRecordsRead, "Records that were read.",
		func(n *archiveCounts) *atomic.Int64 { return &n.read }),
	archiveMetric(metricspage.ArchiveReadAgain,
		"Records that were read and not committed: another worker did that, or they come again.",
		func(n *archiveCounts) *atomic.Int64 { return &n.again }),
	archiveMetric(metricspage.ArchiveDoublesDropped,
		"Records that were dropped because the archive has their first copy.",
		func(n *archiveCounts) *atomic.Int64 { return &n.doubles }),
	archiveMetric(metricspage.ArchiveVoidSkipped, "Records of void aggregates that were skipped.",
		func(n *archiveCounts) *atomic.Int64 { return &n.voided }),
	archiveMetric(metricspage.ArchiveVoidTaken, "Records of void aggregates that were archived.",
		func(n *archiveCounts) *atomic.Int64 { return &n.voidTaken }),
	archiveMetric(metricspage.ArchiveCommits, "Links that were committed.",
		func(n *archiveCounts) *atomic.Int64 { return &n.commits }),
	archiveMetric(metricspage.ArchiveGaps,
		"Places where the stream removed records before they were read.",
		func(n *archiveCounts) *atomic.Int64 { return &n.gaps }),
	archiveMetric(metricspage.ArchiveTakeovers, "Shards that were taken from dead workers.",
		func(n *archiveCounts) *atomic.Int64 { return &n.takeovers }),
	gauge(archiveMetric(metricspage.ArchiveUnclaimed, unclaimedHelp,
		func(n *archiveCounts) *atomic.Int64 { return &n.unclaimed })),
	archiveMetric(metricspage.ArchiveOutages, "Calls that found the archive's place out of reach.",
		func(n *archiveCounts) *atomic.Int64 { return &n.outages }),
}

const unclaimedHelp = "Shards that no worker reads, since all have as many as their limits allow."

// gauge makes a metric one that can fall.
func gauge[S any](m metricspage.Metric[S]) metricspage.Metric[S] {
	m.Gauge = true
	return m
}

func archiveMetric(
	name, help string, of func(*archiveCounts) *atomic.Int64,
) metricspage.Metric[*archiveCounts] {
	return metricspage.Metric[*archiveCounts]{
		Name: name, Help: help, Value: func(n *archiveCounts) float64 {
			return float64(of(n).Load())
		},
	}
}

// page returns the page of an archive's metrics.
func (n *archiveCounts) page(stream string) *metricspage.Page {
	page := metricspage.New()
	metricspage.AddEach(page, metricspage.StreamLabel, archiveMetrics,
		func() iter.Seq2[string, *archiveCounts] {
			return func(yield func(string, *archiveCounts) bool) { yield(stream, n) }
		})
	return page
}

// serveMetrics serves a page at GET /metrics of an address, until the caller calls stop. Without an
// address it does nothing.
func serveMetrics(
	ctx context.Context, con *console.Console, addr string, page *metricspage.Page,
) (stop func(), err error) {
	if addr == "" {
		return func() {}, nil
	}
	if _, err := checkAddr(ctx, "--metrics", addr); err != nil {
		return nil, err
	}
	listener, err := listen(ctx, "--metrics", addr)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
		if err := new(origin.Guard).CheckPage(r); err != nil {
			origin.Refuse(w, r, err)
			return
		}
		page.ServeHTTP(w, r)
	})
	server := &http.Server{
		Handler: mux, ReadHeaderTimeout: 10 * time.Second,
		ErrorLog: slog.NewLogLogger(con.Logger().Handler(), slog.LevelDebug),
	}
	go func() { _ = server.Serve(listener) }() // until it is closed
	con.Say("metrics: http://%s/metrics", announced(addr, listener))
	return func() { _ = server.Close() }, nil
}
