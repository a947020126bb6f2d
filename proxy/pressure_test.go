package proxy_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"
	"github.com/aws/smithy-go"

	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/producer"
	"github.com/runnel-stream/runnel/proxy"
	"github.com/runnel-stream/runnel/runneltest"
)

// shortWait is Config.PutWait in tests of refusals.
const shortWait = 30 * time.Millisecond

// eventually waits for a condition.
func eventually(t testing.TB, condition string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !holds(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within 20 s: %s", condition)
		}
	}
}

// buffered reports whether the stream's producer has exactly n records in its buffer.
func (s *testProxy) buffered(t testing.TB, stream string, n int) func() bool {
	line := fmt.Sprintf("runnel_proxy_stream_records_buffered{stream=%q} %d\n", stream, n)
	return func() bool {
		_, page := s.get(t, "/metrics")
		return strings.Contains(page, line)
	}
}

// If the buffer is full, a record without room is refused with AWS's error for a shard over its
// limit. All later records of its request are refused too, although the small ones would have room.
func TestFullBuffer(t *testing.T) {
	server := runneltest.NewServer(t, runneltest.WithStream("orders", 1))
	g, upstream := gated(t, server)
	s := serve(t, upstream, func(c *proxy.Config) {
		c.PutWait = shortWait
		c.Producer = producer.Config{
			MaxRecordBytes: 1000, MaxBufferedBytes: 1500, MaxBatchBytes: 1000,
		}
	})
	client := s.client(t)
	type answer struct {
		out *kinesis.PutRecordsOutput
		err error
	}
	answers := make(chan answer, 1)
	go func() {
		out, err := putAll(t, client, "orders", record("a", strings.Repeat("1", 800)),
			record("a", strings.Repeat("2", 800)), record("a", "3"), record("b", "4"))
		answers <- answer{out, err}
	}()
	eventually(t, "one record is buffered", s.buffered(t, "orders", 1))
	// The second record waits for room, in vain. The third and fourth would have room.
	start := time.Now()
	eventually(t, "the wait is over", func() bool { return time.Since(start) > 5*shortWait })
	// Another request finds no room at all, and is refused as a whole.
	_, err := putAll(t, client, "orders", record("c", strings.Repeat("5", 800)))
	var throttled *types.ProvisionedThroughputExceededException
	if !errors.As(err, &throttled) {
		t.Errorf("%v; want ProvisionedThroughputExceededException", err)
	}
	g.release()
	first := <-answers
	if first.err != nil {
		t.Fatal(first.err)
	}
	if *first.out.FailedRecordCount != 3 || first.out.Records[0].SequenceNumber == nil {
		t.Errorf("%d of 4 failed, want all but the first", *first.out.FailedRecordCount)
	}
	for i, r := range first.out.Records[1:] {
		if aws.ToString(r.ErrorCode) != "ProvisionedThroughputExceededException" {
			t.Errorf("record %d: %s", i+2, aws.ToString(r.ErrorCode))
		}
	}
	if stored := readAll(t, server.Kinesis(), "orders")[0]; len(stored) != 1 {
		t.Errorf("%d records are in the stream, want 1", len(stored))
	}
	if _, err := putAll(t, client, "orders", record("a", "7")); err != nil {
		t.Errorf("with room again: %v", err)
	}
}

// A record that is given up gets InternalFailure, unless every attempt was throttled: then it was
// certainly not stored, and gets the error of the throttle.
func TestGivenUpRecord(t *testing.T) {
	server := runneltest.NewServer(t, runneltest.WithStream("orders", 1))
	s := serve(t, server.Kinesis(), func(c *proxy.Config) {
		c.Producer.GiveUpAfter = 500 * time.Millisecond
		c.Producer.RetryMin, c.Producer.RetryMax = time.Millisecond, 5*time.Millisecond
	})
	for fault, want := range map[string]string{
		"PutRecords:lose-answer%100": "InternalFailure",
		"PutRecords:throttle%100":    "ProvisionedThroughputExceededException",
	} {
		if err := server.SetFaults(fault); err != nil {
			t.Fatal(err)
		}
		_, err := s.client(t).PutRecord(t.Context(), &kinesis.PutRecordInput{
			StreamName: aws.String("orders"), PartitionKey: aws.String("a"), Data: []byte("1"),
		})
		var api smithy.APIError
		if !errors.As(err, &api) || api.ErrorCode() != want {
			t.Errorf("%s: %v; want %s", fault, err, want)
		}
	}
}

// Every request releases its memory, whatever its result is. A request without memory is refused
// with 503, but small ones need none.
func TestMemoryOfRequests(t *testing.T) {
	server := runneltest.NewServer(t, runneltest.WithStream("orders", 1))
	g, upstream := gated(t, server)
	s := serve(t, upstream, func(c *proxy.Config) {
		c.PutWait, c.MaxBytes = shortWait, wire.MaxBody
	})
	const most = wire.MaxBody
	list := func(size int) int {
		status, _ := s.post(t, "Kinesis_20131202.ListStreams", jsonType, padded(`{}`, size))
		return status
	}
	for name, body := range map[string]string{
		"not JSON": "{", "a wrong request": `{}`, "a good one": "",
	} {
		target := put
		if body == "" {
			target, body = "Kinesis_20131202.ListStreams", `{}`
		}
		_, _ = s.post(t, target, jsonType, padded(body, most))
		if status := list(most); status != http.StatusOK {
			t.Errorf("after %s: %d", name, status)
		}
	}
	status, _ := s.post(t, "DynamoDB_20120810.ListTables", "application/x-amz-json-1.0",
		padded(`{}`, most))
	if status != http.StatusBadRequest || list(most) != http.StatusOK {
		t.Errorf("after a call of DynamoDB, which was answered with %d, there is no memory", status)
	}
	done := make(chan int, 1)
	go func() {
		status, _ := s.post(t, put, jsonType,
			padded(`{"StreamName":"orders","PartitionKey":"a","Data":"MQ=="}`, most))
		done <- status
	}()
	eventually(t, "the record is buffered", s.buffered(t, "orders", 1))
	if status := list(most); status != http.StatusServiceUnavailable {
		t.Errorf("without memory: %d, want 503", status)
	}
	if status := list(1000); status != http.StatusOK {
		t.Errorf("a small call without memory: %d", status)
	}
	g.release()
	if status := <-done; status != http.StatusOK {
		t.Errorf("the put: %d", status)
	}
	if status := list(most); status != http.StatusOK {
		t.Errorf("after the put: %d", status)
	}
}

// padded returns a document with spaces behind it.
func padded(document string, size int) io.Reader {
	return strings.NewReader(document + strings.Repeat(" ", size-len(document)))
}

// Bodies that are announced and do not come hold no memory.
func TestAnnouncedBodies(t *testing.T) {
	server := runneltest.NewServer(t, runneltest.WithStream("orders", 1))
	s := serve(t, server.Kinesis(), func(c *proxy.Config) { c.PutWait = shortWait })
	for range 40 { // 600 MiB by their announcements
		conn, err := net.Dial("tcp", strings.TrimPrefix(s.endpoint, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		_, err = fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: localhost\r\nX-Amz-Target: %s\r\n"+
			"Content-Type: %s\r\nContent-Length: %d\r\n\r\n{", put, jsonType, wire.MaxBody)
		if err != nil {
			t.Fatal(err)
		}
	}
	status, answer := s.post(t, put, jsonType, padded(
		`{"StreamName":"orders","PartitionKey":"a","Data":"MQ=="}`, wire.MaxBody))
	if status != http.StatusOK {
		t.Errorf("a put beside them: %d %s", status, answer)
	}
}

// Beyond MaxStreams a new stream replaces the stream that was idle for the longest time, and no
// stream with records to deliver.
func TestMaxStreams(t *testing.T) {
	server := runneltest.NewServer(t, runneltest.WithStream("a", 1), runneltest.WithStream("b", 1),
		runneltest.WithStream("c", 1))
	g, upstream := gated(t, server)
	s := serve(t, upstream, func(c *proxy.Config) { c.MaxStreams = 2 })
	client := s.client(t)
	done := make(chan error, 2)
	for _, stream := range []string{"a", "b"} {
		go func() {
			_, err := putAll(t, client, stream, record("k", "1"))
			done <- err
		}()
		eventually(t, "the record is buffered", s.buffered(t, stream, 1))
	}
	_, err := putAll(t, client, "c", record("k", "1"))
	var limit *types.LimitExceededException
	if !errors.As(err, &limit) {
		t.Errorf("a third stream: %v; want LimitExceededException", err)
	}
	g.release()
	for range 2 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	for _, stream := range []string{"a", "c"} { // b has been idle the longest by then
		if _, err := putAll(t, client, stream, record("k", "2")); err != nil {
			t.Errorf("%s: %v", stream, err)
		}
	}
	_, page := s.get(t, "/metrics")
	for stream, there := range map[string]bool{"a": true, "b": false, "c": true} {
		if strings.Contains(page, fmt.Sprintf("_taken_total{stream=%q}", stream)) != there {
			t.Errorf("stream %s has a producer: %v, want %v", stream, !there, there)
		}
	}
}
