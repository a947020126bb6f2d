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

// Everything but puts goes to the endpoint behind, signed with the proxy's keys, and its answers
// and errors come back as they are. The server behind knows those keys alone.
func TestPassedThrough(t *testing.T) {
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

// What the endpoint behind sees of a call, and the client of its answer.
func TestCallsArriveUnchanged(t *testing.T) {
	seen := make(chan *http.Request, 1)
	bodies := make(chan string, 1)
	behind := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		seen <- r
		bodies <- string(body)
		w.Header().Set("Content-Type", jsonType)
		w.Header().Set("X-Amzn-Requestid", "theirs")
		w.WriteHeader(http.StatusTeapot)
		_, _ = io.WriteString(w, `{"odd": "\u00e9"}`)
	}))
	defer behind.Close()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	s := serve(t, kinesis.New(kinesis.Options{
		BaseEndpoint: &behind.URL, Region: "eu-west-1",
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

// Enhanced fan-out flows: events come one by one while the subscription goes on, and the end
// of the proxy is an end between two events.
func TestSubscribeToShard(t *testing.T) {
	server := runneltest.NewServer(t, runneltest.WithStream("orders", 1),
		runneltest.WithStreamDelay(-1))
	// The end does not wait for its time to be over.
	s := serve(t, server.Kinesis(), func(c *proxy.Config) { c.ShutdownTimeout = time.Hour })
	broken := make(chan error, 100)
	client := s.client(t, func(o *kinesis.Options) {
		o.HTTPClient = &http.Client{Transport: endings{o.HTTPClient.(*http.Client).Transport, broken}}
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
		t.Errorf("the end of the proxy ends the subscription with %v", err)
	}
	select {
	case err := <-broken: // which the SDK does not tell
		t.Errorf("the end of the proxy breaks the subscription off: %v", err)
	default:
	}
	if err := <-s.served; err != nil {
		t.Error(err)
	}
}

// endings tells of answers that were broken off.
type endings struct {
	next   http.RoundTripper
	broken chan<- error
}

func (e endings) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := e.next.RoundTrip(r)
	if err == nil {
		response.Body = &ending{response.Body, e.broken}
	}
	return response, err
}

type ending struct {
	io.ReadCloser
	broken chan<- error
}

func (e *ending) Read(p []byte) (int, error) {
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

// What breaks off behind the proxy breaks off in front of it.
func TestBrokenAnswers(t *testing.T) {
	for name, head := range map[string]string{
		"an answer":       "Content-Type: " + jsonType + "\r\nContent-Length: 100\r\n\r\n{",
		"an event stream": "Content-Type: application/vnd.amazon.eventstream\r\nConnection: close\r\n\r\n\x00\x00\x01\x00",
		"a short message": "Content-Type: application/vnd.amazon.eventstream\r\nConnection: close\r\n\r\n" + strings.Repeat("\x00", 12),
		"not events":      "Content-Type: application/vnd.amazon.eventstream\r\nConnection: close\r\n\r\nthis is no event stream",
	} {
		t.Run(name, func(t *testing.T) {
			behind := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				connection, _, err := http.NewResponseController(w).Hijack()
				if err != nil {
					t.Error(err)
					return
				}
				_, _ = io.WriteString(connection, "HTTP/1.1 200 OK\r\n"+head)
				_ = connection.Close()
			}))
			defer behind.Close()
			transport := &http.Transport{}
			defer transport.CloseIdleConnections()
			s := serve(t, kinesis.New(kinesis.Options{
				BaseEndpoint: &behind.URL, Region: "us-east-1",
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
				return // before its head went out
			}
			defer response.Body.Close()
			if answer, err := io.ReadAll(response.Body); err == nil {
				t.Errorf("it is taken for whole: %q", answer)
			}
		})
	}
}

// Without an endpoint behind, calls say so; the proxy itself is well.
func TestNothingBehind(t *testing.T) {
	server := runneltest.NewServer(t)
	behind := server.Kinesis()
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	s := serve(t, behind, nil)
	status, answer := s.postJSON(t, "Kinesis_20131202.ListStreams", "{}")
	if status != http.StatusServiceUnavailable || !strings.Contains(answer, s.proxy.Endpoint()) {
		t.Errorf("%d %s; want 503, and where", status, answer)
	}
	if status, body := s.get(t, "/health"); status != http.StatusOK || body != "ok\n" {
		t.Errorf("health: %d %s", status, body)
	}
}

// Other APIs, and pages of a browser that are not of this machine, are told that they are at
// the wrong door. None of it reaches the endpoint behind.
func TestNotTaken(t *testing.T) {
	server := runneltest.NewServer(t, runneltest.WithStream("orders", 1))
	g, behind := gated(t, server)
	g.release()
	s := serve(t, behind, nil)
	status, answer := s.post(t, "DynamoDB_20120810.ListTables", "application/x-amz-json-1.0",
		strings.NewReader("{}"))
	var told struct {
		Type    string `json:"__type"`
		Message string `json:"message"`
	}
	if err := json.Unmarshal([]byte(answer), &told); err != nil || status != http.StatusBadRequest ||
		!strings.Contains(told.Message, "Kinesis API alone") {
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
	if len(g.calls) != 5 { // before its first unit the producer asks for the stream's time
		t.Errorf("%v reached the endpoint behind, want two puts, two lists and ListShards", g.calls)
	}
}

// A client that goes away while its record waits: the record is delivered.
func TestClientGoesAway(t *testing.T) {
	server := runneltest.NewServer(t, runneltest.WithStream("orders", 1))
	g, behind := gated(t, server)
	s := serve(t, behind, func(c *proxy.Config) { c.MaxStreams = 1 })
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
	// And nothing of the request is held: the stream makes room for another one.
	eventually(t, "the stream is idle", func() bool {
		_, err := putAll(t, client, "another", record("a", "1"))
		var missing *types.ResourceNotFoundException
		return errors.As(err, &missing)
	})
}

// A client that has ended its half of the connection counts as gone: it is not to take an
// answer without a result for an acknowledgement.
func TestNoEmptyAnswer(t *testing.T) {
	server := runneltest.NewServer(t, runneltest.WithStream("orders", 1))
	_, behind := gated(t, server)
	s := serve(t, behind, func(c *proxy.Config) { c.ShutdownTimeout = shortWait })
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
		// A request whose client has gone before its records are taken is not executed.
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
		t.Error("two records were not delivered, and the end is in order")
	}
}
