package workermetrics_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/runnel-stream/runnel/consumer"
	"github.com/runnel-stream/runnel/internal/metricspage"
	"github.com/runnel-stream/runnel/internal/workermetrics"
)

// values reads the page of a status, with each series by its ID.
func values(t *testing.T, s consumer.Status, there bool) map[string]float64 {
	t.Helper()
	page := metricspage.New()
	workermetrics.Add(page, func() (consumer.Status, bool) { return s, there })
	answer := httptest.NewRecorder()
	page.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	all, err := metricspage.Read(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]float64{}
	for _, s := range all {
		found[s.ID] = s.Value
	}
	return found
}

// The page has the status in base units. The fleet's numbers are those of watchers alone.
func TestPage(t *testing.T) {
	now := time.UnixMilli(1_700_000_000_000)
	s := consumer.Status{
		Time: now, Stream: "s", App: "a", TotalLeases: 7, TotalShards: 8, UnclaimedLeases: 3,
		Looked: now, Watching: true, RetentionHours: 24, WorkerLeases: 1, Records: 5, Bytes: 50,
		Retries: 2, Throttles: 4,
		Shards: []consumer.ShardStatus{{
			Shard: "x", State: consumer.ShardPaused, MillisBehindLatest: 1500,
			CheckpointAge: 2 * time.Second, HandlerTime: 3 * time.Second,
			HandlerSince: now.Add(-4 * time.Second), Records: 6, Bytes: 60, Retries: 1, Throttles: 9,
		}},
	}
	const worker, shard = `,app="a",stream="s"`, `,app="a",shard="x",stream="s"`
	want := map[string]float64{
		metricspage.WorkerTotalLeases + worker: 7, metricspage.WorkerTotalShards + worker: 8,
		metricspage.WorkerUnclaimedLeases + worker: 3, metricspage.WorkerLeases + worker: 1,
		metricspage.WorkerWatching + worker: 1, metricspage.WorkerRetentionSeconds + worker: 86_400,
		metricspage.WorkerRecords + worker: 5, metricspage.WorkerBytes + worker: 50,
		metricspage.WorkerRetries + worker: 2, metricspage.WorkerThrottles + worker: 4,
		metricspage.ShardBehindSeconds + shard: 1.5, metricspage.ShardCheckpointAgeSeconds + shard: 2,
		metricspage.ShardHandlerSeconds + shard: 3, metricspage.ShardHandlerRunningSeconds + shard: 4,
		metricspage.ShardRecords + shard: 6, metricspage.ShardBytes + shard: 60,
		metricspage.ShardRetries + shard: 1, metricspage.ShardThrottles + shard: 9,
		metricspage.ShardState + `,app="a",shard="x",state="paused",stream="s"`: 1,
	}
	got := values(t, s, true)
	for id, value := range want {
		if have, ok := got[id]; !ok || have != value {
			t.Errorf("%s is %v, there: %v; want %v", id, have, ok, value)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d series, want %d", len(got), len(want))
	}
	s.Watching, s.RetentionHours = false, 0
	got = values(t, s, true)
	for _, name := range []string{
		metricspage.WorkerTotalLeases, metricspage.WorkerTotalShards,
		metricspage.WorkerUnclaimedLeases, metricspage.WorkerRetentionSeconds,
	} {
		if _, there := got[name+worker]; there {
			t.Errorf("%s is on the page of a worker that does not know it", name)
		}
	}
	if got := values(t, s, false); len(got) > 0 {
		t.Errorf("without a worker: %v", got)
	}
}
