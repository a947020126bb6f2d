package metricspage_test

import (
	"cmp"
	"iter"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/runnel-stream/runnel/internal/metricspage"
)

type state struct{ stored, waiting float64 }

// A page that was written is read with the same names, labels and values.
func TestWriteAndRead(t *testing.T) {
	page := metricspage.New()
	requests := page.AddCounter(metricspage.ProxyRequests, "Requests.", "operation", "result")
	requests.Inc("PutRecord", "ok")
	requests.Inc("PutRecord", "ok")
	streams := map[string]state{"orders": {stored: 7, waiting: 2}, `a"b`: {stored: 1}}
	metricspage.AddEach(page, metricspage.StreamLabel, []metricspage.Metric[state]{
		{
			Name: metricspage.ProxyRecordsDelivered, Help: "Delivered.",
			Value: func(s state) float64 { return s.stored },
		},
		{
			Name: metricspage.ProxyRecordsBuffered, Help: "Waiting.", Gauge: true,
			Value: func(s state) float64 { return s.waiting },
		},
	}, func() iter.Seq2[string, state] { return maps.All(streams) })
	server := httptest.NewServer(page)
	defer server.Close()
	all, err := metricspage.Get(t.Context(), server.Client(), server.URL)
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(all, func(a, b metricspage.Series) int { return cmp.Compare(a.ID, b.ID) })
	type row struct {
		name, stream string
		value        float64
	}
	var got []row
	for _, s := range all {
		got = append(got, row{s.Name, s.Labels[metricspage.StreamLabel], s.Value})
	}
	want := []row{
		{metricspage.ProxyRequests, "", 2},
		{metricspage.ProxyRecordsBuffered, `a"b`, 0},
		{metricspage.ProxyRecordsBuffered, "orders", 2},
		{metricspage.ProxyRecordsDelivered, `a"b`, 1},
		{metricspage.ProxyRecordsDelivered, "orders", 7},
	}
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// Series of one metric have different IDs if any label differs.
func TestIDs(t *testing.T) {
	all, err := metricspage.Read(strings.NewReader("m{a=\"1\"} 1\nm{a=\"2\"} 2\nm{b=\"1\"} 3\nm 4\n"))
	if err != nil {
		t.Fatal(err)
	}
	ids := map[string]bool{}
	for _, s := range all {
		ids[s.ID] = true
	}
	if len(ids) != 4 {
		t.Errorf("%v", ids)
	}
}

func TestGetFails(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/html" {
			_, _ = w.Write([]byte("<html>"))
			return
		}
		http.NotFound(w, r)
	}))
	defer server.Close()
	for page, want := range map[string]string{
		server.URL:           "404",
		server.URL + "/html": "not a page in Prometheus' text format",
	} {
		_, err := metricspage.Get(t.Context(), server.Client(), page)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", page, err, want)
		}
	}
}

func TestURL(t *testing.T) {
	for text, want := range map[string]string{
		"http://localhost:4568": "http://localhost:4568/metrics", "http://a/": "http://a/metrics",
		"https://a/other?x=1": "https://a/other?x=1",
	} {
		if got, err := metricspage.URL(text); got != want || err != nil {
			t.Errorf("%s: %s, %v", text, got, err)
		}
	}
	for _, wrong := range []string{"", "here", "ftp://here", "http://", "http://a b"} {
		if got, err := metricspage.URL(wrong); err == nil {
			t.Errorf("%q was taken as %s", wrong, got)
		}
	}
}

// FuzzRead wants each text to be read or refused.
func FuzzRead(f *testing.F) {
	f.Add("runnel_proxy_stream_attempts_throttled_total{stream=\"s\"} 1e300\n")
	f.Add("a{b=\"\\\"\"} -1 17\n")
	f.Fuzz(func(t *testing.T, page string) {
		all, err := metricspage.Read(strings.NewReader(page))
		if err != nil && all != nil {
			t.Errorf("%d series, and %v", len(all), err)
		}
	})
}
