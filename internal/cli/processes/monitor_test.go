package processes_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/runnel-stream/runnel/internal/cli/clitest"
	"github.com/runnel-stream/runnel/internal/metricspage"
)

// Each command that is a worker of a fleet serves the worker's metrics and sends them to
// CloudWatch: to the server, where the stream is.
func TestWorkerMetrics(t *testing.T) {
	r := newKillRun(t, madeEvents(t), 1)
	server := r.serve("")
	r.start("put", "--endpoint", r.endpoint, "--stream", "events", "--key", "repo", r.events).want(0)
	url := regexp.MustCompile(`http://127\.0\.0\.1:\d+/metrics`)
	for app, command := range map[string][]string{
		"tailing":   {"tail", "--from", "oldest"},
		"archiving": {"archive", "--to", r.archive},
		"rolling": {
			"rollup", "--dynamodb", "sums", "--key", "/repo", "--bucket", "1h", "--count",
		},
	} {
		args := append(command, "--endpoint", r.endpoint, "--stream", "events", "--app", app,
			"--failover", killFailover, "--metrics", "127.0.0.1:0", "--cloudwatch", "Events")
		worker := r.start(args...)
		values := map[string]float64{}
		clitest.Eventually(t, app+" shows that it has read all", func() bool {
			at := url.FindString(worker.stderr.String())
			if at == "" {
				return false
			}
			page, err := metricspage.Get(t.Context(), http.DefaultClient, at)
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range page {
				if s.Labels[metricspage.StreamLabel] == "events" && s.Labels[metricspage.AppLabel] == app {
					values[s.Name] = s.Value
				}
			}
			return values[metricspage.WorkerRecords] == madeCount
		})
		for _, name := range []string{
			metricspage.WorkerTotalShards, metricspage.WorkerLeases, metricspage.WorkerRetentionSeconds,
			metricspage.ShardBehindSeconds, metricspage.ShardHandlerSeconds, metricspage.ShardState,
		} {
			if v, there := values[name]; !there || v == 0 && name != metricspage.ShardBehindSeconds {
				t.Errorf("%s: %s is %v, there: %v", app, name, v, there)
			}
		}
		worker.stop()
		page, err := metricspage.Get(t.Context(), http.DefaultClient, r.endpoint+"/metrics")
		if err != nil {
			t.Fatal(err)
		}
		there := false
		for _, s := range page {
			there = there || strings.HasPrefix(s.Name, "runnel_cloudwatch_") &&
				s.Labels["namespace"] == "Events" && s.Labels["metric"] == "records" &&
				s.Labels["dimensions"] == "App="+app
		}
		if !there {
			t.Errorf("%s: CloudWatch has no records", app)
		}
	}
	r.start("tail", "--endpoint", r.endpoint, "--stream", "events", "--metrics", "127.0.0.1:0").want(2)
	r.start("tail", "--endpoint", r.endpoint, "--stream", "events", "--app", "tailing", "--once",
		"--cloudwatch", "AWS/Events").want(2)
	server.stop()
}
