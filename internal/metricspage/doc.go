// Package metricspage writes and reads pages of metrics in Prometheus' text format, and holds the
// names of the metrics that commands serve.
//
// A command serves a Page, as runnel proxy does at GET /metrics; another one reads it with Get, as
// runnel shards autoscale does. Both take the names from here, so a renamed metric cannot be
// written under one name and read under another.
package metricspage
