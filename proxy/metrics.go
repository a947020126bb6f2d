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
		"Requests by operation (PutRecord, PutRecords; other: forwarded calls; refused: requests "+
			"that are no calls) and result: ok, gone (the client disconnected), the error's code, "+
			"or for a forwarded call the class of its status.", "operation", "result")}
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

// streamMetrics are the metrics of each stream's producer. They begin at 0 again after the producer
// was closed in favour of another stream's: see Config.MaxStreams.
var streamMetrics = []metric{
	counter(metricspage.ProxyRecordsTaken, "Records that the proxy took.",
		func(s producer.Stats) uint64 { return s.Taken }),
	counter(metricspage.ProxyRecordsDelivered, "Records that the stream acknowledged.",
		func(s producer.Stats) uint64 { return s.Delivered }),
	counter(metricspage.ProxyRecordsUndelivered,
		"Records that were refused, given up, or left at the shutdown.",
		func(s producer.Stats) uint64 { return s.Undelivered }),
	counter(metricspage.ProxyCalls, "PutRecords calls to the stream.",
		func(s producer.Stats) uint64 { return s.Calls }),
	counter(metricspage.ProxyAttemptsRetried, "Attempts of records after their first.",
		func(s producer.Stats) uint64 { return s.Retried }),
	counter(metricspage.ProxyAttemptsThrottled, "Attempts of records that exceeded a limit.",
		func(s producer.Stats) uint64 { return s.Throttled }),
	counter(metricspage.ProxyAttemptsUnknown,
		"Attempts of records without an answer: an upper bound of the duplicates "+
			"that the proxy has left in the stream.",
		func(s producer.Stats) uint64 { return s.Unknown }),
	gauge(metricspage.ProxyRecordsBuffered, "Records that were taken and have no result yet.",
		func(s producer.Stats) float64 { return float64(s.Buffered) }),
	gauge(metricspage.ProxyBytesBuffered, "Bytes of data and partition keys in these records.",
		func(s producer.Stats) float64 { return float64(s.BufferedBytes) }),
	gauge(metricspage.ProxyOldestRecordSeconds, "Age of the oldest of these records.",
		func(s producer.Stats) float64 { return s.OldestAge.Seconds() }),
	gauge(metricspage.ProxyOutage,
		"1 during an outage, in which no call is answered, and 0 otherwise.",
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
