package server

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/runnel-stream/runnel/internal/budget"
)

// shortBuffers gives its connections short buffers, so that a client that does not read is noticed.
type shortBuffers struct{ net.Listener }

func (l shortBuffers) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err == nil {
		err = conn.(*net.TCPConn).SetWriteBuffer(4 << 10)
	}
	return conn, err
}

// While clients that do not read hold most of the memory for answers, other large answers have fewer
// records, small ones come as ever, and the memory comes back.
func TestReadersThatDoNotRead(t *testing.T) {
	t.Parallel()
	s, err := Open(t.Context(), Config{
		Memory: true, ShutdownTimeout: time.Millisecond, Streams: []StreamSpec{{Name: "large", Shards: 1}}, StreamDelay: -1,
	})
	if err != nil {
		t.Fatal(err)
	}
	s.answers = budget.New(16<<20, 0)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, shortBuffers{listener}) }()
	t.Cleanup(func() {
		stop()
		<-served // the calls of those that do not read are cut off
		if err := s.Close(context.WithoutCancel(ctx)); err != nil {
			t.Error(err)
		}
	})
	url := "http://" + listener.Addr().String()
	call := func(operation, body string) (status int, answer string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/x-amz-json-1.1")
		r.Header.Set("X-Amz-Target", "Kinesis_20131202."+operation)
		got, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer got.Body.Close()
		text, err := io.ReadAll(got.Body)
		if err != nil {
			t.Fatal(err)
		}
		return got.StatusCode, string(text)
	}
	data := strings.Repeat("QUJD", 1_000_000/3)
	for range 12 {
		if status, answer := call("PutRecord",
			`{"StreamName":"large","PartitionKey":"a","Data":"`+data+`"}`); status != http.StatusOK {
			t.Fatal(status, answer)
		}
	}
	_, answer := call("GetShardIterator",
		`{"StreamName":"large","ShardId":"shardId-000000000000","ShardIteratorType":"TRIM_HORIZON"}`)
	var from struct{ ShardIterator string }
	if err := json.Unmarshal([]byte(answer), &from); err != nil {
		t.Fatal(err)
	}
	get := fmt.Sprintf(`{"ShardIterator":%q}`, from.ShardIterator)
	var readers []net.Conn
	for range 10 {
		conn, err := net.Dial("tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		readers = append(readers, conn)
		_ = conn.(*net.TCPConn).SetReadBuffer(4 << 10)
		_, _ = fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: localhost\r\nX-Amz-Target: "+
			"Kinesis_20131202.GetRecords\r\nContent-Type: application/x-amz-json-1.1\r\n"+
			"Content-Length: %d\r\n\r\n%s", len(get), get)
		_, _ = bufio.NewReaderSize(conn, 16).Peek(1) // it is answered
	}
	if used := s.answers.Used(); used < 10<<20 || used > 16<<20 {
		t.Errorf("the answers take %d bytes", used)
	}
	if status, answer := call("ListStreams", "{}"); status != http.StatusOK {
		t.Error(status, answer)
	}
	status, answer := call("GetRecords", get)
	if records := strings.Count(answer, "SequenceNumber"); status != http.StatusOK || records != 1 {
		t.Errorf("%d with %d records, want one", status, records)
	}
	for _, conn := range readers {
		_ = conn.Close()
	}
	for start := time.Now(); s.answers.Used() > 0; time.Sleep(time.Millisecond) {
		if time.Since(start) > 20*time.Second {
			t.Fatalf("the readers have gone, and their answers take %d bytes", s.answers.Used())
		}
	}
}
