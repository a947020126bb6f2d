package proxy_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/runnel-stream/runnel/proxy"
	"github.com/runnel-stream/runnel/runneltest"
)

// Every call but a put is forwarded with the proxy's signature, and its answer or error comes back
// unchanged. Upstream knows the proxy's keys alone.
func TestForwardedCalls(t *testing.T) {
	server := runneltest.NewServer(t, runneltest.WithStream("orders", 1),
		runneltest.WithCredentials("AKIDPROXY", "secret"))
	s := serve(t, server.Kinesis(), nil)
	client := s.client(t)
	if _, err := putAll(t, client, "orders", record("a", "1"), record("a", "2")); err != nil {
		t.Fatal(err)
	}
	summary, err := client.DescribeStreamSummary(t.Context(),
		&kinesis.DescribeStreamSummaryInput{StreamName: aws.String("orders")})
	if err != nil || *summary.StreamDescriptionSummary.OpenShardCount != 1 {
		t.Fatalf("DescribeStreamSummary: %+v, %v", summary, err)
	}
	if got := readAll(t, client, "orders")[0]; len(got) != 2 || string(got[1].Data) != "2" {
		t.Errorf("GetRecords through the proxy: %d records", len(got))
	}
	if _, err := client.CreateStream(t.Context(), &kinesis.CreateStreamInput{
		StreamName: aws.String("more"), ShardCount: aws.Int32(1),
	}); err != nil {
		t.Errorf("CreateStream, whose answer has no body: %v", err)
	}
	var inUse *types.ResourceInUseException
	if _, err := client.CreateStream(t.Context(), &kinesis.CreateStreamInput{
		StreamName: aws.String("more"), ShardCount: aws.Int32(1),
	}); !errors.As(err, &inUse) {
		t.Errorf("CreateStream again: %v; want ResourceInUseException", err)
	}
}

// A forwarded call arrives unchanged except for its signature, and so does the answer.
func TestForwardedCallIsUnchanged(t *testing.T) {
	seen := make(chan *http.Request, 1)
	bodies := make(chan string, 1)
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		seen <- r
		bodies <- string(body)
		w.Header().Set("Content-Type", jsonType)
		w.Header().Set("X-Amzn-Requestid", "theirs")
		w.WriteHeader(http.StatusTeapot)
		_, _ = io.WriteString(w, `{"odd": "\u00e9"}`)
	}))
	defer upstream.Close()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	s := serve(t, kinesis.New(kinesis.Options{
		BaseEndpoint: &upstream.URL, Region: "eu-west-1",
		Credentials: credentials.NewStaticCredentialsProvider("AKIDPROXY", "secret", "token"),
		HTTPClient:  &http.Client{Transport: transport},
	}), nil)
	const body = `{"unknown": [1,  2], "StreamName":"x"}`
	var packed bytes.Buffer
	zipped := gzip.NewWriter(&packed)
	_, _ = io.WriteString(zipped, body)
	_ = zipped.Close()
	for name, c := range map[string]struct{ encoding, sent string }{
		"as it is": {"", body}, "in gzip": {"gzip", packed.String()},
	} {
		header := []string{
			"Authorization", "AWS4-HMAC-SHA256 Credential=AKIDCLIENT/20260101/us-east-1/kinesis/" +
				"aws4_request, SignedHeaders=host, Signature=00", "X-Amz-Security-Token", "theirs",
			"X-Custom", "kept", "User-Agent", "their-sdk/1", "Connection", "x-hop", "X-Hop", "1",
		}
		if c.encoding != "" {
			header = append(header, "Content-Encoding", c.encoding)
		}
		status, answer := s.postJSON(t, "Kinesis_20131202.SomethingNew", c.sent, header...)
		r := <-seen
		if got := <-bodies; got != body {
			t.Errorf("%s: the body arrives as %q", name, got)
		}
		auth := r.Header.Get("Authorization")
		if !strings.Contains(auth, "Credential=AKIDPROXY/") ||
			!strings.Contains(auth, "/eu-west-1/kinesis/aws4_request") ||
			r.Header.Get("X-Amz-Security-Token") != "token" || r.URL.Path != "/" {
			t.Errorf("%s: signed %s, to %s", name, auth, r.URL)
		}
		if r.Header.Get("X-Custom") != "kept" || r.Header.Get("User-Agent") != "their-sdk/1" ||
			r.Header.Get("X-Hop") != "" || r.Header.Get("Content-Encoding") != "" || r.Header.Get("X-Amz-Target") != "Kinesis_20131202.SomethingNew" {
			t.Errorf("%s: headers arrive as %v", name, r.Header)
		}
		if status != http.StatusTeapot || answer != `{"odd": "\u00e9"}` {
			t.Errorf("%s: answered with %d %s", name, status, answer)
		}
	}
}

// The events of a subscription arrive one by one. The shutdown of the proxy ends the subscription
// between two events.
func TestSubscribeToShard(t *testing.T) {
	server := runneltest.NewServer(t, runneltest.WithStream("orders", 1),
		runneltest.WithStreamDelay(-1))
	// The shutdown ends the subscription at once, and does not wait for this timeout.
	s := serve(t, server.Kinesis(), func(c *proxy.Config) { c.ShutdownTimeout = time.Hour })
	broken := make(chan error, 100)
	client := s.client(t, func(o *kinesis.Options) {
		o.HTTPClient = &http.Client{Transport: breakWatch{o.HTTPClient.(*http.Client).Transport, broken}}
	})
	consumer, err := client.RegisterStreamConsumer(t.Context(), &kinesis.RegisterStreamConsumerInput{
		StreamARN: aws.String("arn:aws:kinesis:us-east-1:000000000000:stream/orders"), ConsumerName: aws.String("c"),
	})
	if err != nil {
		t.Fatal(err)
	}
	subscription, err := client.SubscribeToShard(t.Context(), &kinesis.SubscribeToShardInput{
		ConsumerARN: consumer.Consumer.ConsumerARN, ShardId: aws.String("shardId-000000000000"),
		StartingPosition: &types.StartingPosition{Type: types.ShardIteratorTypeTrimHorizon},
	})
	if err != nil {
		t.Fatal(err)
	}
	stream := subscription.GetStream()
	defer stream.Close()
	for _, text := range []string{"one", "two"} {
		if _, err := putAll(t, client, "orders", record("a", text)); err != nil {
			t.Fatal(err)
		}
		if got := nextRecord(t, stream); got != text {
			t.Fatalf("an event brings %q, want %q", got, text)
		}
	}
	s.stop()
	for range stream.Events() {
	}
	if err := stream.Err(); err != nil {
		t.Errorf("the shutdown ends the subscription with %v", err)
	}
	select {
	case err := <-broken: // the SDK does not report it
		t.Errorf("the shutdown breaks the subscription off: %v", err)
	default:
	}
	if err := <-s.served; err != nil {
		t.Error(err)
	}
}

// breakWatch sends the errors of answers that were broken off.
type breakWatch struct {
	next   http.RoundTripper
	broken chan<- error
}

func (e breakWatch) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := e.next.RoundTrip(r)
	if err == nil {
		response.Body = &watchedBody{response.Body, e.broken}
	}
	return response, err
}

type watchedBody struct {
	io.ReadCloser
	broken chan<- error
}

func (e *watchedBody) Read(p []byte) (int, error) {
	n, err := e.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		e.broken <- err
	}
	return n, err
}

// nextRecord returns the data of the next record of a subscription.
func nextRecord(t *testing.T, stream *kinesis.SubscribeToShardEventStream) string {
	t.Helper()
	for e := range stream.Events() {
		event := e.(*types.SubscribeToShardEventStreamMemberSubscribeToShardEvent)
		if records := event.Value.Records; len(records) > 0 {
			return string(appendOpened(nil, records[0])[0].Data)
		}
	}
	t.Fatalf("the subscription has ended: %v", stream.Err())
	return ""
}

// An answer that upstream breaks off is broken off for the client too.
func TestBrokenAnswer(t *testing.T) {
	for name, head := range map[string]string{
		"an answer":       "Content-Type: " + jsonType + "\r\nContent-Length: 100\r\n\r\n{",
		"an event stream": "Content-Type: application/vnd.amazon.eventstream\r\nConnection: close\r\n\r\n\x00\x00\x01\x00",
		"a short message": "Content-Type: application/vnd.amazon.eventstream\r\nConnection: close\r\n\r\n" + strings.Repeat("\x00", 12),
		"not events":      "Content-Type: application/vnd.amazon.eventstream\r\nConnection: close\r\n\r\nthis is no event stream",
	} {
		t.Run(name, func(t *testing.T) {
			upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				connection, _, err := http.NewResponseController(w).Hijack()
				if err != nil {
					t.Error(err)
					return
				}
				_, _ = io.WriteString(connection, "HTTP/1.1 200 OK\r\n"+head)
				_ = connection.Close()
			}))
			defer upstream.Close()
			transport := &http.Transport{}
			defer transport.CloseIdleConnections()
			s := serve(t, kinesis.New(kinesis.Options{
				BaseEndpoint: &upstream.URL, Region: "us-east-1",
				HTTPClient: &http.Client{Transport: transport},
			}), nil)
			request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.endpoint,
				strings.NewReader("{}"))
			if err != nil {
				t.Fatal(err)
			}
			request.Header.Set("X-Amz-Target", "Kinesis_20131202.Something")
			request.Header.Set("Content-Type", jsonType)
			response, err := transport.RoundTrip(request)
			if err != nil {
				return // broken off before the head
			}
			defer response.Body.Close()
			if answer, err := io.ReadAll(response.Body); err == nil {
				t.Errorf("the client gets a complete answer: %q", answer)
			}
		})
	}
}

// If upstream does not answer, forwarded calls get 503. The proxy is healthy, since it takes puts,
// and says why they wait.
func TestUpstreamDown(t *testing.T) {
	server := runneltest.NewServer(t)
	upstream := server.Kinesis()
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	s := serve(t, upstream, nil)
	status, answer := s.postJSON(t, "Kinesis_20131202.ListStreams", "{}")
	if status != http.StatusServiceUnavailable || !strings.Contains(answer, s.proxy.Endpoint()) {
		t.Errorf("%d %s; want 503 with the upstream URL", status, answer)
	}
	want := "ok\n" + s.proxy.Endpoint() + " does not answer: dial tcp "
	status, body := s.get(t, "/health")
	if status != http.StatusOK || !strings.HasPrefix(body, want) ||
		!strings.HasSuffix(body, "connection refused; puts wait until it does\n") {
		t.Errorf("health: %d %s", status, body)
	}
}

// The proxy refuses calls of other APIs and of other machines' web pages. None of them reaches
// upstream.
func TestRefusedCalls(t *testing.T) {
	server := runneltest.NewServer(t, runneltest.WithStream("orders", 1))
	g, upstream := gated(t, server)
	g.release()
	s := serve(t, upstream, nil)
	status, answer := s.post(t, "DynamoDB_20120810.ListTables", "application/x-amz-json-1.0",
		strings.NewReader("{}"))
	var refusal struct {
		Type    string `json:"__type"`
		Message string `json:"message"`
	}
	if err := json.Unmarshal([]byte(answer), &refusal); err != nil || status != http.StatusBadRequest ||
		!strings.Contains(refusal.Message, "Kinesis API alone") {
		t.Errorf("DynamoDB: %d %s", status, answer)
	}
	const good = `{"StreamName":"orders","PartitionKey":"a","Data":"MQ=="}`
	for origin, want := range map[string]int{
		"https://example.com": http.StatusForbidden, "null": http.StatusForbidden,
		"http://localhost:3000": http.StatusOK, "http://127.0.0.1": http.StatusOK,
	} {
		for _, call := range [][2]string{{put, good}, {"Kinesis_20131202.ListStreams", "{}"}} {
			if status, _ := s.postJSON(t, call[0], call[1], "Origin", origin); status != want {
				t.Errorf("a page of %s calls %s: %d, want %d", origin, call[0], status, want)
			}
		}
	}
	if len(g.calls) != 5 { // ListShards: the producer asks for the stream's time before its first unit
		t.Errorf("%v reached upstream, want two puts, two lists and ListShards", g.calls)
	}
}

// If a client disconnects while its record waits, the record is delivered all the same.
func TestClientDisconnects(t *testing.T) {
	server := runneltest.NewServer(t, runneltest.WithStream("orders", 1))
	g, upstream := gated(t, server)
	s := serve(t, upstream, func(c *proxy.Config) { c.MaxStreams = 1 })
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	client := s.client(t)
	go func() {
		_, err := client.PutRecord(ctx, &kinesis.PutRecordInput{
			StreamName: aws.String("orders"), PartitionKey: aws.String("a"), Data: []byte("1"),
		})
		gone <- err
	}()
	eventually(t, "the record is buffered", s.buffered(t, "orders", 1))
	cancel()
	if err := <-gone; err == nil {
		t.Error("the client has an answer")
	}
	g.release()
	eventually(t, "the record is in the stream", func() bool {
		return len(readAll(t, server.Kinesis(), "orders")[0]) == 1
	})
	// The request releases its stream, so another stream can replace it.
	eventually(t, "the stream is idle", func() bool {
		_, err := putAll(t, client, "another", record("a", "1"))
		var missing *types.ResourceNotFoundException
		return errors.As(err, &missing)
	})
}

// A client that has closed its half of the connection counts as disconnected. It gets no answer,
// since it would take an empty one for an acknowledgement.
func TestHalfClosedConnection(t *testing.T) {
	server := runneltest.NewServer(t, runneltest.WithStream("orders", 1))
	_, upstream := gated(t, server)
	s := serve(t, upstream, func(c *proxy.Config) { c.ShutdownTimeout = shortWait })
	for i, call := range []string{put, puts} {
		conn, err := net.Dial("tcp", strings.TrimPrefix(s.endpoint, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		body := `{"StreamName":"orders","PartitionKey":"a","Data":"MQ=="}`
		if call == puts {
			body = `{"StreamName":"orders","Records":[{"PartitionKey":"a","Data":"MQ=="}]}`
		}
		_, err = fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: x\r\nX-Amz-Target: %s\r\n"+
			"Content-Type: %s\r\nContent-Length: %d\r\n\r\n%s", call, jsonType, len(body), body)
		if err != nil {
			t.Fatal(err)
		}
		// The proxy must have taken the record: otherwise the disconnect cancels the put.
		eventually(t, "the record is buffered", s.buffered(t, "orders", i+1))
		if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if answer, _ := io.ReadAll(conn); len(answer) > 0 {
			t.Errorf("%s: %q", call, answer)
		}
	}
	s.stop()
	if err := <-s.served; err == nil {
		t.Error("two records were not delivered, and Serve returned no error")
	}
}

// A call over HTTP/2 that is refused by its head gets the rest of its body dropped, so that its
// client sees the answer, and no reset of the stream.
func TestRefusedBodiesAreDropped(t *testing.T) {
	server := runneltest.NewServer(t)
	_, upstream := gated(t, server)
	s := serve(t, upstream, nil)
	for name, header := range map[string]string{
		"another page's": "Origin", "no operation": "X-Amz-Nothing",
	} {
		body := strings.NewReader(strings.Repeat(" ", 1<<20))
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", body)
		r.ProtoMajor = 2
		r.Header.Set("Content-Type", "application/x-amz-json-1.1")
		r.Header.Set(header, "http://other.example")
		w := httptest.NewRecorder()
		s.proxy.Handler().ServeHTTP(w, r)
		if w.Code < 400 || body.Len() > 0 {
			t.Errorf("%s: %d, and %d bytes are unread", name, w.Code, body.Len())
		}
	}
}
