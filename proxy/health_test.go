package proxy_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"
)

// Health shows upstream's state in a second line. It asks upstream once a second, and for half of
// one.
func TestHealthShowsUpstream(t *testing.T) {
	end := make(chan struct{})
	defer close(end)
	for _, c := range []struct {
		answer func(w http.ResponseWriter)
		want   string
	}{
		{func(w http.ResponseWriter) { _, _ = io.WriteString(w, "ok\n") }, "ok\n"},
		{func(w http.ResponseWriter) { w.WriteHeader(http.StatusForbidden) }, "ok\n"},
		{
			func(w http.ResponseWriter) {
				w.WriteHeader(http.StatusServiceUnavailable)
				_, _ = io.WriteString(w, "the disk is full\nat last\n")
			},
			"ok\nURL does not serve calls, by its /health: the disk is full; puts wait until it does\n",
		},
		{
			func(http.ResponseWriter) { <-end },
			"ok\nURL does not answer within 500ms; puts wait until it does\n",
		},
	} {
		var asked atomic.Int32
		upstream := httptest.NewServer(http.HandlerFunc(
			func(w http.ResponseWriter, r *http.Request) {
				if asked.Add(1); r.Header.Get("Authorization") != "" || r.URL.Path != "/health" {
					t.Errorf("%s %s with %v", r.Method, r.URL, r.Header)
				}
				c.answer(w)
			}))
		t.Cleanup(upstream.Close)
		transport := &http.Transport{}
		t.Cleanup(transport.CloseIdleConnections)
		s := serve(t, kinesis.New(kinesis.Options{
			BaseEndpoint: &upstream.URL, Region: "us-east-1",
			HTTPClient: &http.Client{Transport: transport},
		}), nil)
		want := strings.ReplaceAll(c.want, "URL", upstream.URL)
		var all sync.WaitGroup
		began := time.Now()
		for range 20 {
			all.Go(func() {
				for { // a busy machine may need more than the half second
					status, body := s.get(t, "/health")
					if status == http.StatusOK && body == want {
						return
					}
					if status != http.StatusOK || time.Since(began) > 10*time.Second {
						t.Errorf("%d %q, want %q", status, body, want)
						return
					}
				}
			})
		}
		all.Wait()
		if most := int32(1 + time.Since(began)/time.Second); asked.Load() > most {
			t.Errorf("%q: upstream was asked %d times, want %d at most", want, asked.Load(), most)
		}
	}
}
