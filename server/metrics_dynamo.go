package server

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/runnel-stream/runnel/server/internal/dynamo"
)

// maxShownTables is the number of tables with series of their own, as for streams.
const maxShownTables = 1000

var (
	tablesDesc = prometheus.NewDesc("runnel_dynamo_tables", "Tables that there are.", nil, nil)

	hiddenTablesDesc = prometheus.NewDesc("runnel_dynamo_tables_not_shown",
		"Tables that have no series of their own, because there are too many.", nil, nil)

	unitsDesc = prometheus.NewDesc("runnel_dynamo_units_total",
		"Capacity units that calls have used of a table and its indexes, as DynamoDB counts them.",
		[]string{"account", "region", "table", "kind"}, nil)
)

// collectTables sends the metrics of tables, which come in order.
func collectTables(metrics chan<- prometheus.Metric, tables []dynamo.Use) {
	shown := tables[:min(len(tables), maxShownTables)]
	gauge := func(desc *prometheus.Desc, value int) {
		metrics <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(value))
	}
	gauge(tablesDesc, len(tables))
	gauge(hiddenTablesDesc, len(tables)-len(shown))
	for _, t := range shown {
		send := func(kind string, units float64) {
			metrics <- prometheus.MustNewConstMetric(unitsDesc, prometheus.CounterValue, units,
				t.World.Account, t.World.Region, t.Table, kind)
		}
		send("read", t.Read)
		send("write", t.Write)
	}
}
