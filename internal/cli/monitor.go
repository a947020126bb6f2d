package cli

import (
	"sync/atomic"

	"github.com/spf13/cobra"

	"github.com/runnel-stream/runnel/consumer"
	"github.com/runnel-stream/runnel/internal/metricspage"
	"github.com/runnel-stream/runnel/internal/workermetrics"
)

// monitorFlags are the flags by which a worker of a fleet shows its numbers.
type monitorFlags struct {
	metrics, cloudwatch string
	worker              atomic.Pointer[consumer.Worker] // nil until it is made
}

func (f *monitorFlags) addFlags(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVar(&f.metrics, "metrics", "",
		"HOST:PORT: serve the worker's numbers there, at GET /metrics, for Prometheus")
	flags.StringVar(&f.cloudwatch, "cloudwatch", "",
		"NAMESPACE: send the worker's numbers to CloudWatch, as metrics of this namespace")
}

// addTo adds the worker's metrics to a page.
func (f *monitorFlags) addTo(page *metricspage.Page) *metricspage.Page {
	workermetrics.Add(page, func() (consumer.Status, bool) {
		w := f.worker.Load()
		if w == nil {
			return consumer.Status{}, false
		}
		return w.Status(), true
	})
	return page
}
