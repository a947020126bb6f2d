package proxy_test

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/runnel-stream/runnel/internal/localca"
	"github.com/runnel-stream/runnel/producer"
	"github.com/runnel-stream/runnel/proxy"
	"github.com/runnel-stream/runnel/runneltest"
)

// The shutdown delivers and answers the records that were taken, and accepts no connection.
func TestShutdownDelivers(t *testing.T) {
	server := runneltest.NewServer(t, runneltest.WithStream("orders", 1))
	g, upstream := gated(t, server)
	s := serve(t, upstream, nil)
	client := s.client(t)
	answers := make(chan error, 1)
	go func() {
		_, err := putAll(t, client, "orders", record("a", "1"))
		answers <- err
	}()
	eventually(t, "the record is buffered", s.buffered(t, "orders", 1))
	s.stop()
	eventually(t, "no connection is accepted", func() bool {
		_, err := putAll(t, s.client(t), "orders", record("b", "2"))
		return err != nil && strings.Contains(err.Error(), "connection refused")
	})
	g.release()
	if err := <-answers; err != nil {
		t.Errorf("the put under way: %v", err)
	}
	if err := <-s.served; err != nil {
		t.Errorf("serve: %v", err)
	}
	if stored := readAll(t, server.Kinesis(), "orders")[0]; len(stored) != 1 {
		t.Errorf("%d records are in the stream", len(stored))
	}
}

// If the shutdown's time is too short for a record, its client gets InternalFailure, and Serve's
// error has the number of such records.
func TestShutdownOutOfTime(t *testing.T) {
	server := runneltest.NewServer(t, runneltest.WithStream("orders", 1))
	_, upstream := gated(t, server)
	s := serve(t, upstream, func(c *proxy.Config) { c.ShutdownTimeout = shortWait })
	client := s.client(t)
	answers := make(chan error, 1)
	go func() {
		_, err := putAll(t, client, "orders", record("a", "1"))
		answers <- err
	}()
	eventually(t, "the record is buffered", s.buffered(t, "orders", 1))
	s.stop()
	if err := <-answers; err == nil || !strings.Contains(err.Error(), "InternalFailure") {
		t.Errorf("the put under way: %v; want InternalFailure", err)
	}
	if err := <-s.served; err == nil || !strings.Contains(err.Error(), "1 records were not delivered") {
		t.Errorf("serve: %v; want the number of records that were given up", err)
	}
}

// A closed proxy refuses puts with 503.
func TestClosedProxy(t *testing.T) {
	server := runneltest.NewServer(t, runneltest.WithStream("orders", 1))
	s := serve(t, server.Kinesis(), nil)
	for range 2 {
		if err := s.proxy.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	status, answer := s.postJSON(t, put, `{"StreamName":"orders","PartitionKey":"a","Data":"MQ=="}`)
	if status != http.StatusServiceUnavailable || !strings.Contains(answer, "shutting down") {
		t.Errorf("a put: %d %s", status, answer)
	}
	if status, body := s.get(t, "/health"); status != http.StatusServiceUnavailable {
		t.Errorf("health: %d %s", status, body)
	}
}

// A proxy with TLS serves HTTP/2 and HTTP/1.1.
func TestTLS(t *testing.T) {
	server := runneltest.NewServer(t, runneltest.WithStream("orders", 1))
	authority, err := localca.New()
	if err != nil {
		t.Fatal(err)
	}
	s := serve(t, server.Kinesis(), func(c *proxy.Config) { c.TLS = authority.TLS("127.0.0.1") })
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority.PEM())
	for _, http2 := range []bool{false, true} {
		transport := &http.Transport{
			TLSClientConfig:   &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
			ForceAttemptHTTP2: http2,
		}
		var protocol int
		client := s.client(t, func(o *kinesis.Options) {
			o.HTTPClient = &http.Client{Transport: watch{transport, &protocol}}
		})
		if _, err := putAll(t, client, "orders", record("a", "1")); err != nil {
			t.Errorf("HTTP/2 %v: %v", http2, err)
		}
		if (protocol == 2) != http2 {
			t.Errorf("the connection is HTTP/%d, want HTTP/2: %v", protocol, http2)
		}
		transport.CloseIdleConnections()
	}
}

// A proxy without TLS serves HTTP/2 by prior knowledge. GET /metrics counts requests by result.
func TestUnencryptedHTTP2(t *testing.T) {
	server := runneltest.NewServer(t, runneltest.WithStream("orders", 1))
	s := serve(t, server.Kinesis(), nil)
	transport := &http.Transport{Protocols: new(http.Protocols)}
	transport.Protocols.SetUnencryptedHTTP2(true)
	defer transport.CloseIdleConnections()
	var protocol int
	client := s.client(t, func(o *kinesis.Options) {
		o.HTTPClient = &http.Client{Transport: watch{transport, &protocol}}
	})
	if _, err := putAll(t, client, "orders", record("a", "1")); err != nil || protocol != 2 {
		t.Errorf("HTTP/%d: %v", protocol, err)
	}
	readAll(t, client, "orders")
	_, _ = putAll(t, client, "nowhere", record("a", "1"))
	_, _ = s.postJSON(t, put, "")
	_, page := s.get(t, "/metrics")
	for _, labels := range []string{
		`operation="PutRecords",result="ok"`, `operation="other",result="2xx"`, `operation="refused",result="refused"`,
		`operation="PutRecords",result="ResourceNotFoundException"`,
	} {
		if !strings.Contains(page, "runnel_proxy_requests_total{"+labels+"}") {
			t.Errorf("there is no %s in\n%s", labels, page)
		}
	}
}

// watch notes the version of HTTP of the answers.
type watch struct {
	next     http.RoundTripper
	protocol *int
}

func (w watch) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := w.next.RoundTrip(r)
	if err == nil {
		*w.protocol = response.ProtoMajor
	}
	return response, err
}

// Validate names all wrong fields of a Config at once.
func TestValidate(t *testing.T) {
	if err := (proxy.Config{}).Validate(); err == nil || !strings.Contains(err.Error(), "Client") {
		t.Errorf("no client: %v", err)
	}
	server := runneltest.NewServer(t)
	err := proxy.Config{
		Kinesis: server.Kinesis(), PutWait: time.Hour, MaxStreams: -1, MaxBytes: 1,
		ShutdownTimeout: -1, Producer: producer.Config{Stream: "x", MaxInFlight: -1},
	}.Validate()
	if err == nil {
		t.Fatal("a wrong Config is valid")
	}
	for _, field := range []string{
		"PutWait", "MaxStreams", "MaxBytes", "ShutdownTimeout", "Producer.Stream", "MaxInFlight",
	} {
		if !strings.Contains(err.Error(), field) {
			t.Errorf("%s is not named: %v", field, err)
		}
	}
}
