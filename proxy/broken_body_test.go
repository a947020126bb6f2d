package proxy_test

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/runnel-stream/runnel/runneltest"
)

// A put or a call to pass on, whose body cannot be read as a whole, has no effect upstream, and is
// never answered as if it had.
func TestBrokenBodies(t *testing.T) {
	server := runneltest.NewServer(t, runneltest.WithStream("orders", 1))
	s := serve(t, server.Kinesis(), nil)
	for target, body := range map[string]string{
		put:                             `{"StreamName":"orders","PartitionKey":"k","Data":"MQ=="}`,
		"Kinesis_20131202.DeleteStream": `{"StreamName":"orders"}`,
	} {
		chunk := fmt.Sprintf("%x\r\n%s", len(body), body)
		for name, said := range map[string]string{
			"no size of the first chunk": "Transfer-Encoding: chunked\r\n\r\nzz\r\n" + body,
			"no size of the second one":  "Transfer-Encoding: chunked\r\n\r\n" + chunk + "\r\nzz\r\n",
			"a chunk that is too long":   "Transfer-Encoding: chunked\r\n\r\n" + chunk + "XX0\r\n\r\n",
			"no last chunk":              "Transfer-Encoding: chunked\r\n\r\n" + chunk + "\r\n",
			"a chunk that is cut off":    "Transfer-Encoding: chunked\r\n\r\nfff\r\n" + body,
			"a body that is cut off":     "Content-Length: 2000\r\n\r\n" + body,
			"a packed body, cut off": "Content-Encoding: gzip\r\n" +
				"Content-Length: 200\r\n\r\n\x1f\x8b",
		} {
			t.Run(target+", "+name, func(t *testing.T) {
				if line := s.say(t, target, said, true); strings.Contains(line, " 200 ") {
					t.Errorf("answered with %q", line)
				}
			})
		}
	}
	client := s.client(t) // the stream is there, and has nothing
	if got := readAll(t, client, "orders")[0]; len(got) != 0 {
		t.Errorf("%d records of broken bodies were put", len(got))
	}
	whole := `{"StreamName":"orders","PartitionKey":"k","Data":"MQ=="}`
	said := fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(whole), whole)
	if line := s.say(t, put, said, false); !strings.Contains(line, " 200 ") {
		t.Errorf("a whole body: %q", line)
	}
}

// say sends a call as it is written and returns the answer's first line; "" if there is none. With
// end it ends the sending, which the proxy takes for a client that has gone.
func (s *testProxy) say(t *testing.T, target, said string, end bool) string {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.endpoint, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"+
		"X-Amz-Target: %s\r\nContent-Type: %s\r\n%s", target, jsonType, said); err != nil {
		t.Fatal(err)
	}
	if end {
		_ = conn.(*net.TCPConn).CloseWrite() // the proxy may have closed the connection before
	}
	answer, err := io.ReadAll(conn)
	if err != nil {
		t.Logf("the answer ends with %v", err)
	}
	line, _, _ := strings.Cut(string(answer), "\r\n")
	return line
}
