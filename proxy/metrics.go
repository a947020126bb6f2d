package proxy

import (
	"iter"

	"github.com/runnel-stream/runnel/internal/metricspage"
	"github.com/runnel-stream/runnel/producer"
)

// meters are the proxy's metrics and the page at GET /metrics.
type meters struct {
	requests metricspage.Counter
	page     *metricspage.Page
}

func newMeters(p *Proxy) *meters {
	page := metricspage.New()
	metricspage.AddEach(page, metricspage.StreamLabel, streamMetrics, p.streams.stats)
	return &meters{page: page, requests: page.AddCounter(metricspage.ProxyRequests,
		"Requests by operation (PutRecord, PutRecords, other: passed through, refused: not "+
			"calls) and result: ok, gone (the client), the error's code, or of what is passed "+
			"through the class of its status.", "operation", "result")}
}

func (m *meters) count(operation, result string) { m.requests.Inc(operation, result) }

type metric = metricspage.Metric[producer.Stats]

func counter(name, help string, value func(producer.Stats) uint64) metric {
	return metric{
		Name: name, Help: help, Value: func(s producer.Stats) float64 { return float64(value(s)) },
	}
}

func gauge(name, help string, value func(producer.Stats) float64) metric {
	return metric{Name: name, Help: help, Gauge: true, Value: value}
}

// streamMetrics are those of a stream. They begin again at 0 when its producer has had to make
// room for another stream's.
var streamMetrics = []metric{
	counter(metricspage.ProxyRecordsTaken, "Records that the proxy took.",
		func(s producer.Stats) uint64 { return s.Taken }),
	counter(metricspage.ProxyRecordsDelivered, "Records that the stream acknowledged.",
		func(s producer.Stats) uint64 { return s.Delivered }),
	counter(metricspage.ProxyRecordsUndelivered,
		"Records that were refused, given up or left at the end.",
		func(s producer.Stats) uint64 { return s.Undelivered }),
	counter(metricspage.ProxyCalls, "PutRecords calls to the stream.",
		func(s producer.Stats) uint64 { return s.Calls }),
	counter(metricspage.ProxyAttemptsRetried, "Attempts of records after their first.",
		func(s producer.Stats) uint64 { return s.Retried }),
	counter(metricspage.ProxyAttemptsThrottled, "Attempts of records that were over a limit.",
		func(s producer.Stats) uint64 { return s.Throttled }),
	counter(metricspage.ProxyAttemptsUnknown,
		"Attempts of records without an answer: the upper bound of the doubles "+
			"that the proxy has left in the stream.",
		func(s producer.Stats) uint64 { return s.Unknown }),
	gauge(metricspage.ProxyRecordsBuffered, "Records that were taken and have no result.",
		func(s producer.Stats) float64 { return float64(s.Buffered) }),
	gauge(metricspage.ProxyBytesBuffered, "Their data and partition keys.",
		func(s producer.Stats) float64 { return float64(s.BufferedBytes) }),
	gauge(metricspage.ProxyOldestRecordSeconds, "How long the oldest of them has been waiting.",
		func(s producer.Stats) float64 { return s.OldestAge.Seconds() }),
	gauge(metricspage.ProxyOutage, "1 while nothing answers, and 0 otherwise.",
		func(s producer.Stats) float64 {
			if s.Outage {
				return 1
			}
			return 0
		}),
}

// stats yields the statistics of each stream's producer.
func (s *streams) stats() iter.Seq2[string, producer.Stats] {
	return func(yield func(string, producer.Stats) bool) {
		for _, st := range s.all() {
			if !yield(st.name, st.producer.Stats()) {
				return
			}
		}
	}
}
