package server

import (
	"maps"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

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
	seconds  *prometheus.HistogramVec
	syncs    *prometheus.HistogramVec
	page     http.Handler

	mu         sync.Mutex // held while operations is replaced
	operations atomic.Pointer[map[operationKey]*operationMeters]
}

// operationMeters are the meters of an operation. They are looked up once for each call, since a
// look-up in each vector costs as much as a small call's other bookkeeping.
type operationMeters struct {
	ok, received, answered prometheus.Counter
	seconds                prometheus.Observer
}

type operationKey struct{ service, operation string }

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
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "runnel_call_seconds",
			Help: "How long calls took, from the end of the request to the beginning of the " +
				"answer, or of the event stream.",
			Buckets: []float64{
				0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
			},
		}, operation),
		syncs: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "runnel_sync_seconds",
			Help: "How long the disk took to make files durable, by the folder they are in: " +
				"wal is the log, whose syncs acknowledge.",
			Buckets: prometheus.ExponentialBuckets(0.0001, 2, 15), // 0.1 ms to 1.6 s
		}, []string{"folder", "result"}),
	}
	m.operations.Store(&map[operationKey]*operationMeters{})
	registry := prometheus.NewRegistry()
	registry.MustRegister(m.calls, m.received, m.answered, m.refused, m.faults, m.seconds,
		m.syncs, stateCollector{s})
	m.page = promhttp.HandlerFor(registry, promhttp.HandlerOpts{
		MaxRequestsInFlight: 4, DisableCompression: true, ErrorLog: scrapeLog{s},
	})
	return m
}

// of returns the meters of a call's operation, which must exist: a name that a caller made up
// becomes no label.
func (m *meters) of(call *wire.Call) *operationMeters {
	key := operationKey{call.Service, call.Operation}
	if known := (*m.operations.Load())[key]; known != nil {
		return known
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	all := maps.Clone(*m.operations.Load())
	if all[key] == nil {
		all[key] = &operationMeters{
			ok:       m.calls.WithLabelValues(key.service, key.operation, "ok"),
			received: m.received.WithLabelValues(key.service, key.operation),
			answered: m.answered.WithLabelValues(key.service, key.operation),
			seconds:  m.seconds.WithLabelValues(key.service, key.operation),
		}
		m.operations.Store(&all)
	}
	return all[key]
}

// count counts an executed call.
func (m *meters) count(call *wire.Call, failure *wire.Error, took time.Duration) {
	result := "ok"
	if failure != nil {
		result = resultOf(failure)
	}
	if result == "UnknownOperationException" {
		m.calls.WithLabelValues(call.Service, "unknown", result).Inc()
		return
	}
	of := m.of(call)
	if failure == nil {
		of.ok.Inc()
	} else {
		m.calls.WithLabelValues(call.Service, call.Operation, result).Inc()
	}
	of.received.Add(float64(len(call.Body)))
	of.seconds.Observe(took.Seconds())
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
