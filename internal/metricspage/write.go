package metricspage

import (
	"iter"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Page is the metrics of one server and the handler that serves them. Each Page has its own
// registry, so that several servers in a process do not mix. It is safe for concurrent use.
type Page struct {
	registry *prometheus.Registry
	handler  http.Handler
}

// mostReaders is the highest number of readers of a page at a time. Further ones get status 503.
const mostReaders = 4

// New returns a page without metrics.
func New() *Page {
	registry := prometheus.NewRegistry()
	return &Page{registry: registry, handler: promhttp.HandlerFor(registry, promhttp.HandlerOpts{
		MaxRequestsInFlight: mostReaders, DisableCompression: true,
	})}
}

// ServeHTTP serves the page.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) { p.handler.ServeHTTP(w, r) }

// Counter counts events by the values of its labels. It is safe for concurrent use.
type Counter struct{ vector *prometheus.CounterVec }

// AddCounter adds a counter with labels to the page. It panics if the page has the name already.
func (p *Page) AddCounter(name, help string, labels ...string) Counter {
	vector := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	p.registry.MustRegister(vector)
	return Counter{vector}
}

// Inc counts one event with those values of the labels, in their order.
func (c Counter) Inc(values ...string) { c.vector.WithLabelValues(values...).Inc() }

// Metric is a metric that is read from the state S when the page is served.
type Metric[S any] struct {
	Name, Help string
	Gauge      bool // false for a counter, which only grows until it begins again at 0
	Value      func(S) float64
}

// AddEach adds metrics to the page, with one series of each metric for each state. The label has
// the name that all yields with the state. The page calls all whenever it is served.
func AddEach[S any](p *Page, label string, metrics []Metric[S], all func() iter.Seq2[string, S]) {
	AddLabelled(p, []string{label}, metrics, func(yield func([]string, S) bool) {
		for name, state := range all() {
			if !yield([]string{name}, state) {
				return
			}
		}
	})
}

// AddLabelled adds metrics to the page, with one series of each metric for each state. The labels
// have the values that all yields with the state, in their order. The page calls all whenever it is
// served.
func AddLabelled[S any](p *Page, labels []string, metrics []Metric[S], all iter.Seq2[[]string, S]) {
	c := &collector[S]{metrics: metrics, all: all}
	for _, m := range metrics {
		c.descriptions = append(c.descriptions, prometheus.NewDesc(m.Name, m.Help, labels, nil))
	}
	p.registry.MustRegister(c)
}

type collector[S any] struct {
	metrics      []Metric[S]
	descriptions []*prometheus.Desc // of the metrics
	all          iter.Seq2[[]string, S]
}

// Describe implements prometheus.Collector. It describes nothing, because the series change.
func (*collector[S]) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (c *collector[S]) Collect(series chan<- prometheus.Metric) {
	for labels, state := range c.all {
		for i, m := range c.metrics {
			kind := prometheus.CounterValue
			if m.Gauge {
				kind = prometheus.GaugeValue
			}
			series <- prometheus.MustNewConstMetric(
				c.descriptions[i], kind, m.Value(state), labels...)
		}
	}
}
