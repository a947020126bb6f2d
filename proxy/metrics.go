package proxy

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/runnel-stream/runnel/producer"
)

// meters are the proxy's metrics, and what GET /metrics shows: a registry of its own, so that
// several proxies in a process do not mix.
type meters struct {
	requests *prometheus.CounterVec
	page     http.Handler
}

func newMeters(p *Proxy) *meters {
	m := &meters{requests: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "runnel_proxy_requests_total",
		Help: "Requests by operation (PutRecord, PutRecords, other: passed through, refused: not " +
			"calls) and result: ok, gone (the client), the error's code, or of what is passed " +
			"through the class of its status.",
	}, []string{"operation", "result"})}
	registry := prometheus.NewRegistry()
	registry.MustRegister(m.requests, streamCollector{p.streams})
	m.page = promhttp.HandlerFor(registry, promhttp.HandlerOpts{
		MaxRequestsInFlight: 4, DisableCompression: true,
	})
	return m
}

func (m *meters) count(operation, result string) {
	m.requests.WithLabelValues(operation, result).Inc()
}

// metric is one that every stream has, as its producer's statistics say.
type metric struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(producer.Stats) float64
}

func counter(name, help string, value func(producer.Stats) uint64) metric {
	return metric{
		streamDesc(name, help), prometheus.CounterValue,
		func(s producer.Stats) float64 { return float64(value(s)) },
	}
}

func gauge(name, help string, value func(producer.Stats) float64) metric {
	return metric{streamDesc(name, help), prometheus.GaugeValue, value}
}

func streamDesc(name, help string) *prometheus.Desc {
	return prometheus.NewDesc("runnel_proxy_stream_"+name, help, []string{"stream"}, nil)
}

// streamMetrics are those of a stream. They begin again at 0 when its producer has had to make
// room for another stream's.
var streamMetrics = []metric{
	counter("records_taken_total", "Records that the proxy took.",
		func(s producer.Stats) uint64 { return s.Taken }),
	counter("records_delivered_total", "Records that the stream acknowledged.",
		func(s producer.Stats) uint64 { return s.Delivered }),
	counter("records_undelivered_total", "Records that were refused, given up or left at the end.",
		func(s producer.Stats) uint64 { return s.Undelivered }),
	counter("calls_total", "PutRecords calls to the stream.",
		func(s producer.Stats) uint64 { return s.Calls }),
	counter("attempts_retried_total", "Attempts of records after their first.",
		func(s producer.Stats) uint64 { return s.Retried }),
	counter("attempts_throttled_total", "Attempts of records that were over a limit.",
		func(s producer.Stats) uint64 { return s.Throttled }),
	counter("attempts_unknown_total", "Attempts of records without an answer: the upper bound of "+
		"the doubles that the proxy has left in the stream.",
		func(s producer.Stats) uint64 { return s.Unknown }),
	gauge("records_buffered", "Records that were taken and have no result.",
		func(s producer.Stats) float64 { return float64(s.Buffered) }),
	gauge("bytes_buffered", "Their data and partition keys.",
		func(s producer.Stats) float64 { return float64(s.BufferedBytes) }),
	gauge("oldest_record_seconds", "How long the oldest of them has been waiting.",
		func(s producer.Stats) float64 { return s.OldestAge.Seconds() }),
	gauge("outage", "1 while nothing answers, and 0 otherwise.",
		func(s producer.Stats) float64 {
			if s.Outage {
				return 1
			}
			return 0
		}),
}

// streamCollector collects the statistics of the streams' producers.
type streamCollector struct{ streams *streams }

// Describe says nothing: which streams there are differs.
func (streamCollector) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (c streamCollector) Collect(metrics chan<- prometheus.Metric) {
	for _, st := range c.streams.all() {
		stats := st.producer.Stats()
		for _, m := range streamMetrics {
			metrics <- prometheus.MustNewConstMetric(m.desc, m.kind, m.value(stats), st.name)
		}
	}
}
