package cli

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/runnel-stream/runnel/internal/metricspage"
	"github.com/runnel-stream/runnel/reshard"
)

const proxyPage = `# HELP runnel_proxy_requests_total Requests.
# TYPE runnel_proxy_requests_total counter
runnel_proxy_requests_total{operation="PutRecord",result="ok"} 3
# TYPE runnel_proxy_stream_attempts_throttled_total counter
runnel_proxy_stream_attempts_throttled_total{stream="orders"} A
runnel_proxy_stream_attempts_throttled_total{stream="others"} 1e6
# TYPE runnel_proxy_stream_records_delivered_total counter
runnel_proxy_stream_records_delivered_total{stream="orders"} B
`

// The growth of all pages' counters is summed, over resets and pages that fail.
func TestThrottlePages(t *testing.T) {
	pages := map[string]string{"/metrics": "", "/other": ""}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if pages[r.URL.Path] == "out" {
			http.Error(w, "out", http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write([]byte(pages[r.URL.Path]))
	}))
	defer server.Close()
	p, err := newThrottlePages([]string{server.URL, server.URL + "/other"}, "orders")
	if err != nil {
		t.Fatal(err)
	}
	page := func(refused, stored string) string {
		return strings.NewReplacer("A", refused, "B", stored).Replace(proxyPage)
	}
	for i, c := range []struct {
		first, second   string
		stored, refused uint64
		err             string
	}{
		{first: page("5", "100")}, // the first page has not grown, and an empty one is young
		{first: page("7", "150"), second: page("3", "20"), stored: 70, refused: 5},
		{first: page("7", "150"), second: page("3", "21"), stored: 1},
		{first: page("2", "10"), second: page("4", "21"), stored: 10, refused: 3}, // it began again
		{first: "out", second: page("5", "21"), refused: 1, err: "/metrics: 503"},
		{first: page("6", "40"), second: page("5", "21"), stored: 30, refused: 4},
		{first: "other_total 3\n", second: page("6", "21"), refused: 1, err: "it is not that of a"},
		{first: "<html>", second: page("6", "21"), err: "not a page in Prometheus' text format"},
		{first: page("NaN", "-1"), second: page("6", "+Inf")},
	} {
		pages["/metrics"], pages["/other"] = c.first, c.second
		got, err := p.read(t.Context())
		if got.Stored != c.stored || got.Refused != c.refused || (err == nil) != (c.err == "") ||
			err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%d: %+v, %v, want %+v", i, got, err, c)
		}
	}
	for _, wrong := range []string{"", "here", "ftp://here", "http://", "http://a b"} {
		if _, err := newThrottlePages([]string{wrong}, "orders"); err == nil {
			t.Errorf("%q was taken", wrong)
		}
	}
	server.Close()
	if _, err := p.read(t.Context()); err == nil || strings.Count(err.Error(), "/metrics") != 1 {
		t.Errorf("no server: %v", err)
	}
}

// Series of one name differ by their other labels, so that a page of many proxies counts each.
func TestThrottlePagesManySeries(t *testing.T) {
	read := func(a, b string) counters {
		const refused = metricspage.ProxyAttemptsThrottled
		found, err := readPage(refused+`{stream="s",instance="a"} `+a+"\n"+
			refused+`{stream="s",instance="b"} `+b+"\n", "s")
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	if got := grownBy(read("10", "5"), read("12", "1")); got.Refused != 3 || got.Stored != 0 {
		t.Errorf("%+v, want 2 and 1 of one that began again", got)
	}
}

func readPage(text, stream string) (counters, error) {
	series, err := metricspage.Read(strings.NewReader(text))
	if err != nil {
		return nil, err
	}
	return countersOf(series, stream)
}

// Whatever a page says, it is read or refused.
func FuzzThrottlePage(f *testing.F) {
	f.Add(proxyPage, "orders")
	f.Add("runnel_proxy_stream_attempts_throttled_total{stream=\"s\"} 1e300\n", "s")
	f.Add("a{b=\"\\\"\"} -1 17\n", "")
	f.Fuzz(func(t *testing.T, page, stream string) {
		now, err := readPage(page, stream)
		if err != nil {
			return
		}
		if got := grownBy(now, now); got.Stored != 0 || got.Refused != 0 {
			t.Errorf("the same page has grown by %+v", got)
		}
		var none reshard.Throttled
		if got := grownBy(nil, now); len(now) == 0 && (got.Stored != none.Stored || got.Refused != 0) {
			t.Errorf("nothing has grown by %+v", got)
		}
	})
}
