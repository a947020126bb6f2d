package server

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
)

// A body that cannot be read as a whole stores nothing, and is never answered as if it had.
func TestBrokenBodies(t *testing.T) {
	s := serveStreams(t, Config{}, "http/1.1")
	const head = "POST / HTTP/1.1\r\nHost: localhost\r\nX-Amz-Target: Kinesis_20131202.ListStreams\r\n" +
		"Content-Type: application/x-amz-json-1.1\r\n"
	for name, said := range map[string]string{
		"no size of the first chunk": "Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n",
		"no size of the second one":  "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\nzz\r\n",
		"a chunk that is too long":   "Transfer-Encoding: chunked\r\n\r\n2\r\n{}XX0\r\n\r\n",
		"no last chunk":              "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n",
		"a chunk that is cut off":    "Transfer-Encoding: chunked\r\n\r\nff\r\n{}",
		"a body that is cut off":     "Content-Length: 200\r\n\r\n{}",
		"a packed body, cut off":     "Content-Encoding: gzip\r\nContent-Length: 200\r\n\r\n\x1f\x8b",
	} {
		t.Run(name, func(t *testing.T) {
			conn := dial(t, s.address)
			if _, err := io.WriteString(conn, head+said); err != nil {
				t.Fatal(err)
			}
			_ = conn.(*net.TCPConn).CloseWrite()
			answer, _ := io.ReadAll(conn)
			if line, _, _ := strings.Cut(string(answer), "\r\n"); strings.Contains(line, " 200 ") {
				t.Errorf("answered with %q", line)
			}
		})
	}
	conn := dial(t, s.address)
	if _, err := fmt.Fprintf(conn, "%sConnection: close\r\nContent-Length: 2\r\n\r\n{}", head); err != nil {
		t.Fatal(err)
	}
	if answer, err := io.ReadAll(conn); err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 200") {
		t.Errorf("a whole body: %q %v", answer, err)
	}
}
