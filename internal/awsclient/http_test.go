package awsclient

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// staged forces the worst order of a race: net/http's look for surplus bytes behind a request's
// body against the SDK's Close of that body. The write of the last byte does not return before the
// SDK has closed the body and reads the answer. The answer's body does not come before net/http
// has looked.
type staged struct {
	client  aws.HTTPClient
	closed  chan struct{} // the SDK has closed the request's body
	wrote   chan error    // net/http has finished with the request
	answers chan struct{} // the server may send the answer's body
}

func (s *staged) Do(r *http.Request) (*http.Response, error) {
	trace := &httptrace.ClientTrace{WroteRequest: func(i httptrace.WroteRequestInfo) {
		s.wrote <- i.Err
	}}
	answer, err := s.client.Do(r.WithContext(httptrace.WithClientTrace(r.Context(), trace)))
	if err == nil {
		answer.Body = &stagedBody{ReadCloser: answer.Body, of: s}
	}
	return answer, err
}

type stagedBody struct {
	io.ReadCloser
	of   *staged
	once sync.Once
	err  error
}

func (b *stagedBody) Read(p []byte) (int, error) {
	b.once.Do(func() {
		close(b.of.closed)
		b.err = <-b.of.wrote
		close(b.of.answers)
	})
	n, err := b.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = errors.Join(err, b.err)
	}
	return n, err
}

// heldConn does not return from the write that completes a request before hold is closed.
type heldConn struct {
	net.Conn
	hold <-chan struct{}
}

// lastBytes end a PutRecords body: the SDK writes its members in the order of their names.
var lastBytes = []byte(`"StreamName":"s"}`)

func (c heldConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	if bytes.HasSuffix(p, lastBytes) {
		<-c.hold
	}
	return n, err
}

// putOnStage sends one PutRecords through the race and returns its error.
func putOnStage(t *testing.T, doer func(*HTTPClient) aws.HTTPClient) error {
	t.Helper()
	stage := &staged{
		closed: make(chan struct{}), wrote: make(chan error, 1),
		answers: make(chan struct{}),
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		const answer = `{"FailedRecordCount":0,"Records":[]}`
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/x-amz-json-1.1")
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush()
		<-stage.answers
		_, _ = io.WriteString(w, answer)
	}))
	defer server.Close()
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
		return heldConn{conn, stage.closed}, err
	}
	cfg := ForServer(server.URL, "", LocalRegion, dial)
	client := cfg.HTTPClient.(*HTTPClient)
	defer client.CloseIdleConnections()
	stage.client = doer(client)
	cfg.HTTPClient = stage
	_, err := Kinesis(cfg, WithoutRetries()).PutRecords(t.Context(), &kinesis.PutRecordsInput{
		StreamName: aws.String("s"), Records: records(100, 1000),
	})
	return err
}

func records(count, size int) []types.PutRecordsRequestEntry {
	entries := make([]types.PutRecordsRequestEntry, count)
	for i := range entries {
		entries[i] = types.PutRecordsRequestEntry{
			PartitionKey: aws.String("k"), Data: bytes.Repeat([]byte("x"), size),
		}
	}
	return entries
}

// TestBodySurvives: a stored PutRecords is reported as stored even if the SDK closes the request's
// body while net/http still writes it (type staged).
func TestBodySurvives(t *testing.T) {
	for name, doer := range map[string]func(c *HTTPClient) aws.HTTPClient{
		"our client":        func(c *HTTPClient) aws.HTTPClient { return c },
		"a client of users": func(c *HTTPClient) aws.HTTPClient { return PlainBodies(c.client) },
	} {
		if err := putOnStage(t, doer); err != nil {
			t.Errorf("%s: a stored batch was reported as failed: %v", name, err)
		}
	}
}

// TestBodyBare shows that the race is real, so that the test above can fail: without the
// wrapper the same call fails, sooner or later. Once it does not, the SDK is mended and
// PlainBodies can go.
func TestBodyBare(t *testing.T) {
	bare := func(c *HTTPClient) aws.HTTPClient { return c.client }
	for range 20 {
		if err := putOnStage(t, bare); err != nil {
			t.Logf("without the wrapper: %v", err)
			return
		}
	}
	t.Error("the SDK's own body survives: the wrapper is no longer needed")
}

// TestStoredAgainstAcknowledged sends many PutRecords and compares the server's stored records with
// the client's acknowledged ones. It also bounds the number of connections.
func TestStoredAgainstAcknowledged(t *testing.T) {
	const senders, calls = 8, 100
	var stored, opened, failed, badWrites atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		stored.Add(1)
		_, _ = io.WriteString(w, `{"FailedRecordCount":0,"Records":[]}`)
	}))
	defer server.Close()
	cfg := ForServer(server.URL, "", LocalRegion, func(
		ctx context.Context, network, address string,
	) (net.Conn, error) {
		opened.Add(1)
		return (&net.Dialer{}).DialContext(ctx, network, address)
	})
	defer cfg.HTTPClient.(*HTTPClient).CloseIdleConnections()
	client := Kinesis(cfg, WithoutRetries())
	trace := &httptrace.ClientTrace{WroteRequest: func(i httptrace.WroteRequestInfo) {
		if i.Err != nil {
			badWrites.Add(1)
		}
	}}
	input := &kinesis.PutRecordsInput{StreamName: aws.String("s"), Records: records(100, 1000)}
	var group sync.WaitGroup
	for range senders {
		group.Go(func() {
			ctx := httptrace.WithClientTrace(t.Context(), trace)
			for range calls {
				if _, err := client.PutRecords(ctx, input); err != nil {
					failed.Add(1)
				}
			}
		})
	}
	group.Wait()
	// net/http may open a connection that it then does not need, once per sender.
	if stored.Load() != senders*calls || failed.Load() != 0 || badWrites.Load() != 0 ||
		opened.Load() > 2*senders {
		t.Errorf("of %d calls %d were stored and %d reported as failed, %d writes failed; "+
			"%d connections for %d senders", senders*calls, stored.Load(), failed.Load(),
			badWrites.Load(), opened.Load(), senders)
	}
}
