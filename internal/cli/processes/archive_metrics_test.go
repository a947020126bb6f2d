package processes_test

import (
	"net/http"
	"regexp"
	"testing"

	"github.com/runnel-stream/runnel/internal/cli/clitest"
	"github.com/runnel-stream/runnel/internal/metricspage"
)

// An archive worker serves its counts.
func TestArchiveMetrics(t *testing.T) {
	r := newKillRun(t, madeEvents(t), 1)
	server := r.serve("")
	r.start("put", "--endpoint", r.endpoint, "--stream", "events", "--key", "repo", r.events).want(0)
	worker := r.start("archive", "--endpoint", r.endpoint, "--stream", "events", "--to", r.archive,
		"--failover", killFailover, "--every", "300ms", "--metrics", "127.0.0.1:0")
	url := regexp.MustCompile(`http://127\.0\.0\.1:\d+/metrics`)
	values := map[string]float64{}
	clitest.Eventually(t, "the worker has read and committed all", func() bool {
		at := url.FindString(worker.stderr.String())
		if at == "" {
			return false
		}
		page, err := metricspage.Get(t.Context(), http.DefaultClient, at)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range page {
			if s.Labels[metricspage.StreamLabel] == "events" {
				values[s.Name] = s.Value
			}
		}
		return values[metricspage.ArchiveRecordsRead] == madeCount &&
			values[metricspage.ArchiveCommits] >= 4
	})
	for _, name := range []string{metricspage.ArchiveGaps, metricspage.ArchiveOutages} {
		if v, there := values[name]; !there || v != 0 {
			t.Errorf("%s is %v, there: %v", name, v, there)
		}
	}
	worker.stop()
	r.start("archive", "--endpoint", r.endpoint, "--stream", "events", "--to", r.archive,
		"--metrics", "nowhere:http:1", "--once").want(2)
	server.stop()
}
