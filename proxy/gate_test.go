package proxy_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/runnel-stream/runnel/runneltest"
)

// gate holds PutRecords calls on their way to upstream until release.
type gate struct {
	next kinesis.HTTPClient
	open chan struct{}
	once sync.Once

	mu    sync.Mutex
	calls []string // the operations of all calls, held or not
}

// gated returns a client of the server, and the gate that its calls go through.
func gated(t testing.TB, server *runneltest.Server) (*gate, *kinesis.Client) {
	options := server.Kinesis().Options()
	g := &gate{next: options.HTTPClient, open: make(chan struct{})}
	t.Cleanup(g.release)
	options.HTTPClient = g
	return g, kinesis.New(options)
}

func (g *gate) release() { g.once.Do(func() { close(g.open) }) }

func (g *gate) Do(r *http.Request) (*http.Response, error) {
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	g.mu.Lock()
	g.calls = append(g.calls, operation)
	g.mu.Unlock()
	if operation == "PutRecords" {
		select {
		case <-g.open:
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
	return g.next.Do(r)
}
