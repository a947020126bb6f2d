package proxy_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/runnel-stream/runnel/aggregate"
	"github.com/runnel-stream/runnel/proxy"
)

// testProxy is a proxy that serves on a port of this machine.
type testProxy struct {
	proxy    *proxy.Proxy
	endpoint string
	stop     context.CancelFunc
	served   chan error
}

// serve starts a proxy in front of the client's endpoint. The proxy ends with the test.
func serve(t testing.TB, client *kinesis.Client, change func(*proxy.Config)) *testProxy {
	t.Helper()
	cfg := proxy.Config{
		Kinesis: client, ShutdownTimeout: 10 * time.Second,
		Logger: slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelError})),
	}
	if change != nil {
		change(&cfg)
	}
	p, err := proxy.New(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	s := &testProxy{
		proxy: p, endpoint: "http://" + listener.Addr().String(), stop: stop,
		served: make(chan error, 1),
	}
	if cfg.TLS != nil {
		s.endpoint = "https://" + listener.Addr().String()
	}
	go func() {
		s.served <- p.Serve(ctx, listener)
		close(s.served)
	}()
	t.Cleanup(func() {
		stop()
		if err := <-s.served; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return s
}

// client returns a client of the SDK, like a user's: with keys that upstream does not know, and
// connections of its own. It does not retry unless change sets another Retryer.
func (s *testProxy) client(t testing.TB, change ...func(*kinesis.Options)) *kinesis.Client {
	transport := &http.Transport{MaxIdleConnsPerHost: 100}
	t.Cleanup(transport.CloseIdleConnections)
	return kinesis.New(kinesis.Options{
		BaseEndpoint: &s.endpoint, Region: "eu-central-1", Retryer: aws.NopRetryer{},
		Credentials: credentials.NewStaticCredentialsProvider("AKIDCLIENT", "client", "their token"),
		HTTPClient:  &http.Client{Transport: plainBodies{transport}},
	}, change...)
}

// plainBodies hides all methods of the SDK's bodies but Read and Close from net/http: see
// docs/serve.md.
type plainBodies struct{ next http.RoundTripper }

func (p plainBodies) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		r = r.Clone(r.Context())
		r.Body = struct {
			io.Reader
			io.Closer
		}{r.Body, r.Body}
	}
	return p.next.RoundTrip(r)
}

// post sends a call without the SDK, and returns the status and the answer.
func (s *testProxy) post(
	t testing.TB, target, contentType string, body io.Reader, header ...string,
) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.endpoint, body)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("X-Amz-Target", target)
	request.Header.Set("Content-Type", contentType)
	for i := 0; i+1 < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	return s.do(t, request)
}

func (s *testProxy) do(t testing.TB, request *http.Request) (int, string) {
	t.Helper()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	response, err := transport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(answer)
}

const (
	jsonType = "application/x-amz-json-1.1"
	put      = "Kinesis_20131202.PutRecord"
	puts     = "Kinesis_20131202.PutRecords"
)

// postJSON posts a JSON body.
func (s *testProxy) postJSON(t testing.TB, target, body string, header ...string) (int, string) {
	t.Helper()
	return s.post(t, target, jsonType, strings.NewReader(body), header...)
}

// get returns the status and the body of a page of the proxy.
func (s *testProxy) get(t testing.TB, path string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.endpoint+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s.do(t, request)
}

// record returns an entry of PutRecords.
func record(key, data string) types.PutRecordsRequestEntry {
	return types.PutRecordsRequestEntry{PartitionKey: &key, Data: []byte(data)}
}

// putAll puts records in one call.
func putAll(
	t testing.TB, client *kinesis.Client, stream string, records ...types.PutRecordsRequestEntry,
) (*kinesis.PutRecordsOutput, error) {
	t.Helper()
	return client.PutRecords(t.Context(), &kinesis.PutRecordsInput{
		StreamName: &stream, Records: records,
	})
}

// readAll returns the records of each shard of a stream, in order. All records of an aggregate have
// its sequence number.
func readAll(t testing.TB, client *kinesis.Client, stream string) [][]types.Record {
	t.Helper()
	ctx := t.Context()
	shards, err := client.ListShards(ctx, &kinesis.ListShardsInput{StreamName: &stream})
	if err != nil {
		t.Fatal(err)
	}
	var all [][]types.Record
	for _, shard := range shards.Shards {
		at, err := client.GetShardIterator(ctx, &kinesis.GetShardIteratorInput{
			StreamName: &stream, ShardId: shard.ShardId,
			ShardIteratorType: types.ShardIteratorTypeTrimHorizon,
		})
		if err != nil {
			t.Fatal(err)
		}
		var records []types.Record
		for iterator := at.ShardIterator; iterator != nil; {
			page, err := client.GetRecords(ctx, &kinesis.GetRecordsInput{ShardIterator: iterator})
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range page.Records {
				records = appendOpened(records, r)
			}
			if iterator = page.NextShardIterator; *page.MillisBehindLatest == 0 {
				break
			}
		}
		all = append(all, records)
	}
	return all
}

// appendOpened appends a record, or the records inside it if it is an aggregate.
func appendOpened(records []types.Record, r types.Record) []types.Record {
	var decoder aggregate.Decoder
	if !decoder.Open(r.Data) {
		return append(records, r)
	}
	for _, inside := range decoder.AppendRecords(nil) {
		opened := r
		opened.PartitionKey, opened.Data = &inside.PartitionKey, bytes.Clone(inside.Data)
		records = append(records, opened)
	}
	return records
}
