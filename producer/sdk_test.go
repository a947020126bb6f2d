package producer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
)

// sdkClient returns the AWS SDK's client for a URL, with the SDK's default retries.
func sdkClient(url string, transport *http.Transport) *kinesis.Client {
	return kinesis.New(kinesis.Options{
		BaseEndpoint: &url, Region: "us-east-1", RetryMaxAttempts: 5,
		Credentials: credentials.NewStaticCredentialsProvider("000000000000", "secret", ""),
		HTTPClient:  &http.Client{Transport: transport},
	})
}

// putOnce makes one call of two records through the SDK and returns its outcome.
func putOnce(t *testing.T, client KinesisAPI, timeout time.Duration) outcome {
	t.Helper()
	var sent sending
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	p := &Producer{cfg: Config{Stream: "orders"}}
	made := &call{parcels: []parcel{
		{key: laneKey{partition: "a"}, data: []byte("1")},
		{key: laneKey{partition: "b"}, data: []byte{}},
	}}
	output, err := client.PutRecords(sent.trace(ctx), p.input(made), ownCall)
	return classify(output, err, len(made.parcels), &sent)
}

func answer(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/x-amz-json-1.1")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// cut reads the request, writes the beginning of an answer, and cuts the connection.
func cut(begun string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		connection, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			panic(err)
		}
		_, _ = io.WriteString(connection, begun)
		_ = connection.Close()
	}
}

func hang(_ http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	<-r.Context().Done()
}

// The table has the SDK's error and the producer's outcome for each kind of answer. There is one
// request for each, since the SDK does not retry.
func TestOutcomesThroughTheSDK(t *testing.T) {
	const head = "HTTP/1.1 200 OK\r\nContent-Type: application/x-amz-json-1.1\r\nContent-Length: 500\r\n\r\n"
	failure := func(code, message string) string {
		return fmt.Sprintf(`{"__type":%q,"message":%q}`, code, message)
	}
	for name, c := range map[string]struct {
		handler http.HandlerFunc
		want    fate
	}{
		"cut before the answer":       {cut(""), unknown},
		"cut in the headers":          {cut("HTTP/1.1 200 OK\r\nConte"), unknown},
		"cut in the answer":           {cut(head + `{"Records":[{"Seq`), unknown},
		"cut between two results":     {cut(head + `{"Records":[{"SequenceNumber":"1","ShardId":"s"},`), unknown},
		"no JSON":                     {answer(200, "<html>"), unknown},
		"no results":                  {answer(200, `{"FailedRecordCount":0,"Records":[]}`), unknown},
		"hanging":                     {hang, unknown},
		"InternalFailure":             {answer(500, `{"__type":"InternalFailure"}`), unknown},
		"ServiceUnavailable":          {answer(503, failure("ServiceUnavailableException", "")), unknown},
		"a gateway's 502":             {answer(502, "<html>bad gateway"), unknown},
		"a gateway's 413":             {answer(413, ""), suspect},
		"a gateway's 429":             {answer(429, ""), throttled},
		"a gateway's 404":             {answer(404, "<html>"), unknown},
		"throttled":                   {answer(400, failure("ProvisionedThroughputExceededException", "Rate exceeded")), throttled},
		"RequestThrottled":            {answer(400, failure("RequestThrottledException", "")), throttled},
		"bandwidth":                   {answer(400, failure("BandwidthLimitExceeded", "")), throttled},
		"LimitExceeded":               {answer(400, failure("LimitExceededException", "Rate exceeded")), throttled},
		"KMSThrottling":               {answer(400, failure("KMSThrottlingException", "")), throttled},
		"no such stream":              {answer(400, failure("ResourceNotFoundException", "Stream orders under account 000000000000 not found.")), refused},
		"not active":                  {answer(400, failure("ResourceInUseException", "")), failed},
		"no access":                   {answer(400, failure("AccessDeniedException", "User is not authorized")), refused},
		"a wrong signature":           {answer(400, failure("InvalidSignatureException", "The request signature we calculated does not match")), refused},
		"another wrong signature":     {answer(403, failure("SignatureDoesNotMatch", "")), refused},
		"a late signature":            {answer(400, failure("InvalidSignatureException", "Signature expired: 20260101T000000Z is now earlier than")), failed},
		"expired credentials":         {answer(400, failure("ExpiredTokenException", "The security token included in the request is expired")), failed},
		"a validation error":          {answer(400, failure("ValidationException", "1 validation error detected")), suspect},
		"a query's validation error":  {answer(400, failure("ValidationError", "")), suspect},
		"a malformed request":         {answer(400, failure("MalformedHttpRequestException", "")), suspect},
		"an expired iterator":         {answer(400, failure("ExpiredIteratorException", "")), unknown},
		"an invalid argument":         {answer(400, failure("InvalidArgumentException", "")), suspect},
		"namespaced error":            {answer(400, failure("com.amazonaws.kinesis.v20131202#ResourceNotFoundException", "")), refused},
		"an error of the next decade": {answer(400, failure("SomethingNewException", "")), unknown},
	} {
		t.Run(name, func(t *testing.T) {
			var requests atomic.Int32
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				requests.Add(1)
				c.handler(w, r)
			}))
			defer server.Close()
			transport := &http.Transport{}
			defer transport.CloseIdleConnections()
			timeout := 10 * time.Second
			if name == "hanging" {
				timeout = 50 * time.Millisecond
			}
			o := putOnce(t, sdkClient(server.URL, transport), timeout)
			if o.each != nil || o.all.fate != c.want || o.all.err == nil {
				t.Errorf("fate %d, want %d: %v", o.all.fate, c.want, o.all.err)
			}
			if n := requests.Load(); n != 1 {
				t.Errorf("%d requests were made", n)
			}
		})
	}
}

func TestRecordsAreAnsweredOneByOne(t *testing.T) {
	var body atomic.Value
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		bytes, _ := io.ReadAll(r.Body)
		body.Store(string(bytes))
		answer(200, `{"FailedRecordCount":1,"Records":[
			{"SequenceNumber":"49590338271490256608559692538361571095921575989136588898","ShardId":"shardId-000000000000"},
			{"ErrorCode":"ProvisionedThroughputExceededException","ErrorMessage":"Rate exceeded for shard"}]}`)(w, r)
	}))
	defer server.Close()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	o := putOnce(t, sdkClient(server.URL, transport), time.Minute)
	if len(o.each) != 2 || o.each[0].fate != stored || o.each[0].shard != "shardId-000000000000" ||
		o.each[0].sequence != "49590338271490256608559692538361571095921575989136588898" {
		t.Fatalf("%+v", o)
	}
	var answered *RecordError
	if o.each[1].fate != throttled || !errors.As(o.each[1].err, &answered) ||
		!strings.Contains(answered.Error(), "Rate exceeded for shard") {
		t.Errorf("%+v", o.each[1])
	}
	var sent struct {
		StreamName string
		Records    []struct {
			PartitionKey string
			Data         []byte
		}
	}
	if err := json.Unmarshal([]byte(body.Load().(string)), &sent); err != nil ||
		sent.StreamName != "orders" || len(sent.Records) != 2 || string(sent.Records[0].Data) != "1" {
		t.Errorf("%v: %s", err, body.Load())
	}
}

// If it is certain that nothing was sent, the outcome is not unknown.
func TestNothingWasSent(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closedPort := "http://" + listener.Addr().String()
	_ = listener.Close()
	plain := httptest.NewServer(answer(200, ""))
	defer plain.Close()
	for name, c := range map[string]struct {
		url       string
		transport *http.Transport
	}{
		"connection refused": {closedPort, &http.Transport{}},
		"no such host": {"http://kinesis.invalid", &http.Transport{
			DialContext: func(context.Context, string, string) (net.Conn, error) {
				return nil, &net.DNSError{Err: "no such host", Name: "kinesis.invalid", IsNotFound: true}
			},
		}},
		"TLS with a server that has none": {
			strings.Replace(plain.URL, "http:", "https:", 1), &http.Transport{},
		},
		"dialling takes for ever": {closedPort, &http.Transport{
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			defer c.transport.CloseIdleConnections()
			o := putOnce(t, sdkClient(c.url, c.transport), 200*time.Millisecond)
			if o.each != nil || o.all.fate != notSent {
				t.Errorf("fate %d: %v", o.all.fate, o.all.err)
			}
		})
	}
}

// An error that looks like a failed dial proves nothing if there was a connection.
func TestDialErrorAfterAConnectionIsUnknown(t *testing.T) {
	var sent sending
	if f := fateOf(errRefusedConnection, &sent); f != notSent {
		t.Errorf("a failed dial: %d", f)
	}
	sent.connected.Store(true)
	if f := fateOf(errRefusedConnection, &sent); f != unknown {
		t.Errorf("after a connection: %d", f)
	}
}

// A result with neither a number nor an error is no answer for its record.
func TestIncompleteResult(t *testing.T) {
	server := httptest.NewServer(answer(200, `{"Records":[{"ShardId":"s"},{"SequenceNumber":"7","ShardId":"s"}]}`))
	defer server.Close()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	o := putOnce(t, sdkClient(server.URL, transport), time.Minute)
	if len(o.each) != 2 || o.each[0].fate != unknown || o.each[1].fate != stored {
		t.Errorf("%+v", o)
	}
}

// The server stores records, in JSON only, and loses the answers; the producer puts to it through the
// whole SDK.
func TestStoredAgainstAcknowledged(t *testing.T) {
	s := &stream{}
	var requests atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Content-Type") != "application/x-amz-json-1.1" {
			w.WriteHeader(http.StatusUnsupportedMediaType)
			return
		}
		var input kinesis.PutRecordsInput
		if err := json.NewDecoder(r.Body).Decode(&input); err != nil {
			t.Error(err)
		}
		output := s.store(1, &input)
		if requests.Add(1)%7 == 3 {
			cut("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n{")(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/x-amz-json-1.1")
		_ = json.NewEncoder(w).Encode(map[string]any{"FailedRecordCount": 0, "Records": output.Records})
	}))
	defer server.Close()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	p, err := New(t.Context(), Config{
		Stream: "orders", Kinesis: sdkClient(server.URL, transport), MaxInFlight: 4, Order: OrderPlain,
		RetryMin: time.Millisecond, RetryMax: 10 * time.Millisecond, Logger: silent,
	})
	if err != nil {
		t.Fatal(err)
	}
	const records = 2000
	load(t, p, t.Context(), records, 300, func(r Result) {
		if r.Err != nil {
			t.Error(r.Err)
		}
	})
	closeNow(t, p, t.Context())
	doubles, stats := s.inOrder(t), p.Stats()
	if len(s.keys)-doubles != records || doubles == 0 || uint64(doubles) != stats.Unknown {
		t.Errorf("%d stored, %d of them doubles, of %d; %+v", len(s.keys), doubles, records, stats)
	}
}
