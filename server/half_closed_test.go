package server_test

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/runnel-stream/runnel/server"
)

// TestHalfClosed: a client that closes its half of the connection during a delay on request counts
// as gone. It gets no answer: an empty one would look like success. Both ways of HTTP/1.1 do so.
func TestHalfClosed(t *testing.T) {
	for name, header := range map[string]string{
		"the shortcut": "", "net/http": "Connection: close\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			v := serve(t, server.Config{Memory: true, Faults: "PutRecord:delay=1h"})
			conn, err := net.Dial("tcp", strings.TrimPrefix(v.endpoint, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			const body = `{"StreamName":"s","PartitionKey":"k","Data":""}`
			_, err = fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: localhost\r\n"+
				"Content-Type: application/x-amz-json-1.1\r\n"+
				"X-Amz-Target: Kinesis_20131202.PutRecord\r\n"+
				"Content-Length: %d\r\n%s\r\n%s", len(body), header, body)
			if err != nil {
				t.Fatal(err)
			}
			if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
				t.Fatal(err)
			}
			_ = conn.SetReadDeadline(time.Now().Add(20 * time.Second))
			answer, err := io.ReadAll(conn)
			if len(answer) > 0 || err != nil {
				t.Errorf("it gets %q, %v, want an end without an answer", answer, err)
			}
		})
	}
}
