package server

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/runnel-stream/runnel/server/internal/kinesis"
)

// maxShownStreams is the number of streams with series of their own: the first ones by account,
// region and name. The bound keeps a scrape small.
const maxShownStreams = 1000

var (
	streamsDesc = prometheus.NewDesc("runnel_streams", "Streams that there are.", nil, nil)
	hiddenDesc  = prometheus.NewDesc("runnel_streams_not_shown",
		"Streams that have no series of their own, because there are too many.", nil, nil)

	recordsInDesc = streamDesc("records_in_total", "Records that were stored and acknowledged.")
	bytesInDesc   = streamDesc("bytes_in_total",
		"Data and partition keys of records that were stored and acknowledged.")
	recordsOutDesc = streamDesc("records_out_total",
		"Records in answers of GetRecords and in events, counted once for each of these.")
	bytesOutDesc = streamDesc("bytes_out_total",
		"Data and partition keys of records in answers of GetRecords and in events.")
	recordsRefusedDesc = streamDesc("records_refused_total",
		"Records that answers of PutRecords refused, by the error's code.", "code")
	openShardsDesc    = streamDesc("open_shards", "Shards that take records.")
	subscriptionsDesc = streamDesc("subscriptions",
		"Subscriptions of SubscribeToShard under way.")
)

func streamDesc(name, help string, more ...string) *prometheus.Desc {
	return prometheus.NewDesc("runnel_stream_"+name, help,
		append([]string{"account", "region", "stream"}, more...), nil)
}

// collectStreams sends the metrics of streams, which come in order.
func collectStreams(metrics chan<- prometheus.Metric, streams []kinesis.Activity) {
	shown := streams[:min(len(streams), maxShownStreams)]
	gauge := func(desc *prometheus.Desc, value int) {
		metrics <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(value))
	}
	gauge(streamsDesc, len(streams))
	gauge(hiddenDesc, len(streams)-len(shown))
	for i := range shown {
		st := &shown[i]
		send := func(
			desc *prometheus.Desc, kind prometheus.ValueType, value int64, more ...string,
		) {
			metrics <- prometheus.MustNewConstMetric(desc, kind, float64(value),
				append([]string{st.World.Account, st.World.Region, st.Name}, more...)...)
		}
		send(recordsInDesc, prometheus.CounterValue, st.RecordsIn)
		send(bytesInDesc, prometheus.CounterValue, st.BytesIn)
		send(recordsOutDesc, prometheus.CounterValue, st.RecordsOut)
		send(bytesOutDesc, prometheus.CounterValue, st.BytesOut)
		send(recordsRefusedDesc, prometheus.CounterValue, st.RecordsThrottled,
			"ProvisionedThroughputExceededException")
		send(recordsRefusedDesc, prometheus.CounterValue, st.RecordsFailed, "InternalFailure")
		send(openShardsDesc, prometheus.GaugeValue, int64(st.OpenShards))
		send(subscriptionsDesc, prometheus.GaugeValue, int64(st.Subscriptions))
	}
}
