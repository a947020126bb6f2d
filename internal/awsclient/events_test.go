package awsclient

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
)

// A server sends no more than the narrow window to a reader that does not read, by whatever client
// the event client was made from. The client that was copied keeps its own window.
func TestEventWindow(t *testing.T) {
	var sent atomic.Int64
	server := httptest.NewUnstartedServer(http.HandlerFunc(
		func(w http.ResponseWriter, r *http.Request) {
			if r.ProtoMajor != 2 {
				t.Errorf("the request came by %s", r.Proto)
			}
			part := make([]byte, 16<<10)
			for {
				n, err := w.Write(part)
				if err != nil {
					return
				}
				sent.Add(int64(n))
			}
		}))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	trust := server.Client().Transport.(*http.Transport)
	trusting := func(to *http.Transport) { to.TLSClientConfig = trust.TLSClientConfig.Clone() }
	plain := &http.Client{Transport: trust.Clone()}
	for _, c := range []struct {
		name   string
		client aws.HTTPClient
	}{
		{"http.Client", plain},
		{"the SDK's", awshttp.NewBuildableClient().WithTransportOptions(trusting)},
		{"this package's", newHTTPClient(func() *http.Transport {
			transport := awshttp.NewBuildableClient().GetTransport()
			trusting(transport)
			return transport
		}(), nil)},
	} {
		events := ForEvents(c.client)
		bytes, most := unread(t, events, server.URL, &sent), int64(eventWindow+(64<<10))
		if bytes < eventWindow/2 || bytes > most {
			t.Errorf("%s: the server sent %d bytes to a reader that does not read, want up to %d",
				c.name, bytes, most)
		}
		events.CloseIdleConnections()
	}
	if whole := unread(t, plain, server.URL, &sent); whole < 1<<20 {
		t.Errorf("the client that was copied takes %d bytes", whole)
	}
	plain.CloseIdleConnections()
}

// unread makes a request and returns how many bytes the server sends as long as none are read.
func unread(t *testing.T, client aws.HTTPClient, url string, sent *atomic.Int64) int64 {
	t.Helper()
	sent.Store(0)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	unread := int64(-1)
	for unread != sent.Load() {
		unread = sent.Load()
		<-time.After(100 * time.Millisecond)
	}
	if _, err := io.CopyN(io.Discard, answer.Body, 1<<20); err != nil {
		t.Errorf("reading on: %v", err)
	}
	return unread
}

// A client of an unknown kind is used as it is.
func TestEventsOfAnotherClient(t *testing.T) {
	called := false
	events := ForEvents(doer(func(*http.Request) (*http.Response, error) {
		called = true
		return nil, http.ErrServerClosed
	}))
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://x", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := events.Do(request); err == nil || !called {
		t.Errorf("called is %v, %v", called, err)
	}
	events.CloseIdleConnections()
}

type doer func(*http.Request) (*http.Response, error)

func (d doer) Do(r *http.Request) (*http.Response, error) { return d(r) }
