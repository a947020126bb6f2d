package server

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/runnel-stream/runnel/server/internal/shardlog"
	"github.com/runnel-stream/runnel/server/internal/wal"
)

var (
	logDesc     = prometheus.NewDesc("runnel_log_bytes", "Bytes that were ever logged.", nil, nil)
	pendingDesc = prometheus.NewDesc("runnel_log_pending_bytes",
		"Bytes that are not durable yet, or that wait in memory to be copied to segments.",
		nil, nil)
	itemsMemoryDesc = prometheus.NewDesc("runnel_items_memory_bytes",
		"Memory that the items of all tables take: what --items-memory bounds.", nil, nil)
	pacedDesc = prometheus.NewDesc("runnel_log_paced_total",
		"Times that a put has waited for a checkpoint, so that the log stays short.", nil, nil)
	logStalledDesc = prometheus.NewDesc("runnel_log_stalled",
		"1 while the log waits for disk space, and goes on by itself.", nil, nil)
	poisonedDesc = prometheus.NewDesc("runnel_log_poisoned",
		"1 if a write or a sync of the log has failed: writes are refused until a restart.",
		nil, nil)
	segmentsStalledDesc = prometheus.NewDesc("runnel_segments_stalled",
		"1 while segments cannot be written, or if one could not be synced.", nil, nil)
	damagedDesc = prometheus.NewDesc("runnel_damaged_records_total",
		"Records that reads have skipped since the start, because they are damaged on the disk; "+
			"each counts once.", nil, nil)
	memoryDesc = prometheus.NewDesc("runnel_memory_bytes",
		"Bytes that the data take in memory; only with a limit on them.", nil, nil)
	memoryLimitDesc = prometheus.NewDesc("runnel_memory_limit_bytes",
		"The limit on them.", nil, nil)
	diskDesc = prometheus.NewDesc("runnel_disk_bytes",
		"Bytes that the data take, by part: log, snapshots, items, or segments.",
		[]string{"part"}, nil)
)

// collectStore sends the metrics of the data directory.
func (s *Server) collectStore(metrics chan<- prometheus.Metric, e *engine) {
	gauge := func(desc *prometheus.Desc, value int64, labels ...string) {
		metrics <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(value),
			labels...)
	}
	yes := func(is bool) int64 {
		if is {
			return 1
		}
		return 0
	}
	count := func(desc *prometheus.Desc, value float64) {
		metrics <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, value)
	}
	count(logDesc, float64(e.log.Durable()))
	count(pacedDesc, float64(wal.Paced(e.log)))
	pending, _ := e.log.Pending()
	gauge(pendingDesc, pending)
	gauge(itemsMemoryDesc, e.items.Memory().Used)
	logErr, segmentsErr := e.log.Err(), e.shards.Err()
	var poisoned *wal.PoisonedError
	gauge(logStalledDesc, yes(errors.Is(logErr, wal.ErrStalled)))
	gauge(poisonedDesc, yes(errors.As(logErr, &poisoned)))
	gauge(segmentsStalledDesc, yes(errors.Is(segmentsErr, shardlog.ErrStalled) ||
		errors.Is(segmentsErr, shardlog.ErrSync)))
	count(damagedDesc, float64(e.shards.Damaged()))
	if e.memory != nil {
		gauge(memoryDesc, e.memory.Used())
		gauge(memoryLimitDesc, e.memory.Most())
	}
	use, err := e.diskUse()
	if err != nil { // the rest is worth showing
		s.cfg.Logger.Warn("the disk's use cannot be shown", "error", err)
		return
	}
	gauge(diskDesc, use.Log, "log")
	gauge(diskDesc, use.Snapshots, "snapshots")
	gauge(diskDesc, use.Items, "items")
	gauge(diskDesc, use.Records, "segments")
}
