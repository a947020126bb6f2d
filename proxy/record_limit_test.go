package proxy_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/smithy-go"

	"github.com/runnel-stream/runnel/producer"
	"github.com/runnel-stream/runnel/proxy"
	"github.com/runnel-stream/runnel/runneltest"
)

// The proxy takes records of up to exactly the stream's limit, also after the limit was raised.
func TestRecordLimitOfStream(t *testing.T) {
	for _, order := range []producer.Order{producer.OrderKey, producer.OrderShard} {
		t.Run(order.String(), func(t *testing.T) {
			server := runneltest.NewServer(t, runneltest.WithStream("orders", 1))
			client := serve(t, server.Kinesis(), func(c *proxy.Config) { c.Producer.Order = order }).client(t)
			put := func(bytes int) error {
				_, err := client.PutRecord(t.Context(), &kinesis.PutRecordInput{
					StreamName: aws.String("orders"), PartitionKey: aws.String("a"),
					Data: []byte(strings.Repeat("x", bytes-1)),
				})
				return err
			}
			var api smithy.APIError
			if err := errors.Join(put(1<<20-200), put(1<<20)); err != nil {
				t.Fatal(err)
			}
			if err := put(1<<20 + 1); !errors.As(err, &api) || api.ErrorCode() != "ValidationException" {
				t.Errorf("above the limit: %v", err)
			}
			_, err := server.Kinesis().UpdateMaxRecordSize(t.Context(), &kinesis.UpdateMaxRecordSizeInput{
				StreamARN: streamARN(t, server), MaxRecordSizeInKiB: aws.Int32(10 << 10),
			})
			if err != nil {
				t.Fatal(err)
			}
			retry(t, func() error { return put(1<<20 + 1) })
			if err := errors.Join(put(10<<20), put(10<<20-200)); err != nil {
				t.Error(err)
			}
			for _, record := range readAll(t, server.Kinesis(), "orders")[0] {
				if strings.Trim(string(record.Data), "x") != "" {
					t.Errorf("a record has other data: %.40q", record.Data)
				}
			}
		})
	}
}

// retry calls try until it succeeds: the producer reads the limit at most five times a second, and
// the stream is UPDATING for a moment.
func retry(t *testing.T, try func() error) {
	t.Helper()
	var err error
	for limit := time.Now().Add(20 * time.Second); time.Now().Before(limit); {
		if err = try(); err == nil {
			return
		}
	}
	t.Fatal(err)
}

func streamARN(t *testing.T, server *runneltest.Server) *string {
	t.Helper()
	out, err := server.Kinesis().DescribeStreamSummary(t.Context(),
		&kinesis.DescribeStreamSummaryInput{StreamName: aws.String("orders")})
	if err != nil {
		t.Fatal(err)
	}
	return out.StreamDescriptionSummary.StreamARN
}

// If upstream refuses the proxy's credentials, the client gets that error unchanged, and the next
// put may succeed.
func TestRefusedCredentials(t *testing.T) {
	server := runneltest.NewServer(t, runneltest.WithStream("orders", 1))
	to, err := url.Parse(server.Endpoint())
	if err != nil {
		t.Fatal(err)
	}
	var refusing atomic.Bool
	upstream := httputil.NewSingleHostReverseProxy(to)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !refusing.Load() {
			upstream.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/x-amz-json-1.1")
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, `{"__type":"KMSAccessDeniedException","message":"on request"}`)
	}))
	t.Cleanup(front.Close)
	options := server.Kinesis().Options()
	options.BaseEndpoint = &front.URL
	options.Retryer = aws.NopRetryer{}
	client := serve(t, kinesis.New(options), nil).client(t)
	for _, refused := range []bool{false, true, false} {
		refusing.Store(refused)
		out, err := putAll(t, client, "orders", record("a", "1"), record("b", "1"))
		var api smithy.APIError
		switch {
		case !refused && (err != nil || *out.FailedRecordCount != 0):
			t.Errorf("%v, %v", out, err)
		case refused && (!errors.As(err, &api) || api.ErrorCode() != "KMSAccessDeniedException" ||
			!strings.Contains(api.ErrorMessage(), "on request")):
			t.Errorf("refused as: %v", err)
		}
	}
}
