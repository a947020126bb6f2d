package server

import (
	"net/http"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/runnel-stream/runnel/internal/wire"
)

// meters are the server's own metrics, for GET /metrics. They have a registry of their own, so that
// several servers in a process do not mix.
type meters struct {
	calls    *prometheus.CounterVec
	received *prometheus.CounterVec
	answered *prometheus.CounterVec
	refused  prometheus.Counter
	faults   *prometheus.CounterVec
	syncs    *prometheus.HistogramVec
	page     http.Handler
}

// newMeters makes the meters of a server, before its engine is there.
func newMeters(s *Server) *meters {
	operation := []string{"service", "operation"}
	m := &meters{
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "runnel_calls_total",
			Help: "Calls that came to a service, by their result: ok, or the error's code.",
		}, append(operation, "result")),
		received: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "runnel_request_bytes_total", Help: "Bytes of calls' bodies, unpacked.",
		}, operation),
		answered: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "runnel_answer_bytes_total",
			Help: "Bytes of answers' bodies; of event streams, of the events' payloads.",
		}, operation),
		refused: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "runnel_requests_refused_total",
			Help: "Requests that did not become calls: a wrong signature, no operation, a " +
				"broken body, a client that went away.",
		}),
		faults: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "runnel_calls_faulted_total",
			Help: "Calls that a fault on request refused, in the place of executing them.",
		}, []string{"service", "result"}),
		syncs: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "runnel_sync_seconds",
			Help: "How long the disk took to make files durable, by the folder they are in: " +
				"wal is the log, whose syncs acknowledge.",
			Buckets: prometheus.ExponentialBuckets(0.0001, 2, 15), // 0.1 ms to 1.6 s
		}, []string{"folder", "result"}),
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(m.calls, m.received, m.answered, m.refused, m.faults, m.syncs,
		stateCollector{s})
	m.page = promhttp.HandlerFor(registry, promhttp.HandlerOpts{
		MaxRequestsInFlight: 4, DisableCompression: true, ErrorLog: scrapeLog{s},
	})
	return m
}

// count counts an answered call. A name that a caller made up becomes no label.
func (m *meters) count(call *wire.Call, failure *wire.Error) {
	operation, result := call.Operation, "ok"
	if failure != nil {
		result = resultOf(failure)
	}
	if result == "UnknownOperationException" {
		operation = "unknown"
	}
	m.calls.WithLabelValues(call.Service, operation, result).Inc()
	if operation != "unknown" {
		m.received.WithLabelValues(call.Service, operation).Add(float64(len(call.Body)))
	}
}

// countFault counts a call that was not executed. Its operation may not exist: nothing has checked
// it.
func (m *meters) countFault(call *wire.Call, refused *wire.Error) {
	m.faults.WithLabelValues(call.Service, resultOf(refused)).Inc()
}

// resultOf is an error's code without its namespace.
func resultOf(failure *wire.Error) string {
	return failure.Code[strings.IndexByte(failure.Code, '#')+1:]
}

// metricsPage answers GET /metrics. It needs no key, as monitoring has none. Where calls need a
// key, it answers this machine alone.
func (s *Server) metricsPage(w http.ResponseWriter, r *http.Request) {
	s.allow(w)
	w.Header().Set("Cache-Control", "no-store")
	if s.keys.Load() != nil && !IsLoopback(r.RemoteAddr) {
		http.Error(w, "calls to this server must be signed, so its metrics are shown to its own "+
			"machine alone: scrape it at localhost or 127.0.0.1", http.StatusForbidden)
		return
	}
	s.meters.page.ServeHTTP(w, r)
}

// scrapeLog logs the errors of gathering metrics.
type scrapeLog struct{ server *Server }

func (l scrapeLog) Println(v ...any) {
	l.server.cfg.Logger.Error("metrics cannot be shown", "error", v)
}

var (
	upDesc = prometheus.NewDesc("runnel_up",
		"1 if calls are served, as GET /health says, and 0 otherwise.", nil, nil)
	runningDesc = prometheus.NewDesc("runnel_calls_running", "Calls under way.", nil, nil)
)

// stateCollector collects the server's own state at the moment, and its engine's metrics.
type stateCollector struct{ server *Server }

// Describe sends nothing: the set of metrics differs before the start and after.
func (stateCollector) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (c stateCollector) Collect(metrics chan<- prometheus.Metric) {
	send := func(desc *prometheus.Desc, kind prometheus.ValueType, value float64) {
		metrics <- prometheus.MustNewConstMetric(desc, kind, value)
	}
	up := 0.0
	if c.server.unhealthy() == "" {
		up = 1
	}
	send(upDesc, prometheus.GaugeValue, up)
	engine, now := c.server.enter() // so that the engine stays open
	if now != ready {
		return
	}
	defer c.server.leave()
	c.server.mu.Lock()
	running := c.server.mu.calls - 1 // without this one
	c.server.mu.Unlock()
	send(runningDesc, prometheus.GaugeValue, float64(running))
	collectStreams(metrics, engine.kinesis.Activity())
	collectTables(metrics, engine.dynamo.Uses())
	c.server.collectStore(metrics, engine)
	engine.watch.Collect(metrics)
}
