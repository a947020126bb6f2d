package cloudwatch

import (
	"github.com/prometheus/client_golang/prometheus"
)

// labels are the labels of a series. All dimensions share one label: with a label for each,
// callers could create arbitrary labels.
var labels = []string{"account", "region", "namespace", "metric", "dimensions", "unit"}

var (
	valueDesc = prometheus.NewDesc("runnel_cloudwatch_value",
		"The count and the sum of all samples from PutMetricData.", labels, nil)
	averageDesc = prometheus.NewDesc("runnel_cloudwatch_average",
		"The average of the newest datum.", labels, nil)
	minimumDesc = prometheus.NewDesc("runnel_cloudwatch_minimum",
		"The minimum of the newest datum.", labels, nil)
	maximumDesc = prometheus.NewDesc("runnel_cloudwatch_maximum",
		"The maximum of the newest datum.", labels, nil)
	seriesDesc = prometheus.NewDesc("runnel_cloudwatch_series",
		"Series stored from PutMetricData.", nil, nil)
	dataDesc = prometheus.NewDesc("runnel_cloudwatch_data_total",
		"Data received by PutMetricData.", nil, nil)
	droppedDesc = prometheus.NewDesc("runnel_cloudwatch_series_dropped_total",
		"Series dropped to make room for new ones: the least recently updated.", nil, nil)
)

// Describe implements prometheus.Collector.
func (s *Service) Describe(descs chan<- *prometheus.Desc) {
	for _, desc := range [...]*prometheus.Desc{
		valueDesc, averageDesc, minimumDesc, maximumDesc, seriesDesc, dataDesc, droppedDesc,
	} {
		descs <- desc
	}
}

// Collect implements prometheus.Collector.
func (s *Service) Collect(metrics chan<- prometheus.Metric) {
	all, counts := s.store.snapshot()
	gauge := func(desc *prometheus.Desc, value float64, labels ...string) {
		metrics <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
	}
	counter := func(desc *prometheus.Desc, value uint64) {
		metrics <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, float64(value))
	}
	for _, kept := range all {
		values := []string{
			kept.world.Account, kept.world.Region, kept.namespace, kept.metric, kept.dimensions,
			kept.unit,
		}
		count := uint64(min(kept.count, 1<<63)) // a caller may have claimed more
		metrics <- prometheus.MustNewConstSummary(valueDesc, count, kept.sum, nil, values...)
		gauge(averageDesc, kept.newest.sum/kept.newest.count, values...)
		gauge(minimumDesc, kept.newest.minimum, values...)
		gauge(maximumDesc, kept.newest.maximum, values...)
	}
	gauge(seriesDesc, float64(counts.series))
	counter(dataDesc, counts.data)
	counter(droppedDesc, counts.dropped)
}
