package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// wire makes calls with prepared bodies and writes and reads its connections itself. So it measures
// the server, without the SDK and without net/http's client: the goroutines of net/http take about
// twice the processor time. It is safe for concurrent use.
type wire struct {
	address string
	head    string // the common beginning of all request heads
	idle    chan *wireConn
}

// wireConn is a connection, used by one call at a time.
type wireConn struct {
	net.Conn
	in   *bufio.Reader
	head []byte
	used time.Time
}

// stale is the idle time after which a connection is not used again. Node.js closes idle
// connections after five seconds.
const stale = time.Second

func newWire(endpoint string) *wire {
	address := strings.TrimPrefix(endpoint, "http://")
	now := time.Now().UTC()
	return &wire{
		address: address, idle: make(chan *wireConn, mostInFlight),
		// Some peers require a signature; none of them checks it.
		head: "POST / HTTP/1.1\r\nHost: " + address + "\r\nAuthorization: AWS4-HMAC-SHA256 " +
			"Credential=bench/" + now.Format("20060102") + "/us-east-1/kinesis/aws4_request, " +
			"SignedHeaders=host, Signature=00\r\nX-Amz-Date: " + now.Format("20060102T150405Z") +
			"\r\n",
	}
}

func (w *wire) close() {
	for {
		select {
		case c := <-w.idle:
			_ = c.Close()
		default:
			return
		}
	}
}

// call posts a body to an operation and copies the answer to into, unless into is nil. Any status
// but 200 is an error and closes the connection.
func (w *wire) call(ctx context.Context, target string, body []byte, into *bytes.Buffer) error {
	c, err := w.connection(ctx)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	again, err := c.call(w.head, target, body, into)
	if !stop() {
		return errors.Join(err, context.Cause(ctx))
	}
	if c.used = time.Now(); again && err == nil {
		select {
		case w.idle <- c:
			return nil
		default:
		}
	}
	_ = c.Close()
	return err
}

func (w *wire) connection(ctx context.Context) (*wireConn, error) {
	for {
		select {
		case c := <-w.idle:
			if time.Since(c.used) < stale {
				return c, nil
			}
			_ = c.Close()
		default:
			conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", w.address)
			if err != nil {
				return nil, err
			}
			return &wireConn{Conn: conn, in: bufio.NewReader(conn)}, nil
		}
	}
}

// call makes a call and reports whether the connection can be used again.
func (c *wireConn) call(
	head, target string, body []byte, into *bytes.Buffer,
) (again bool, err error) {
	version := "1.1"
	if target[0] == 'D' {
		version = "1.0" // DynamoDB's
	}
	c.head = fmt.Appendf(c.head[:0], "%sContent-Type: application/x-amz-json-%s\r\n"+
		"X-Amz-Target: %s\r\nContent-Length: %d\r\n\r\n", head, version, target, len(body))
	if _, err := (&net.Buffers{c.head, body}).WriteTo(c.Conn); err != nil {
		return false, err
	}
	response, err := http.ReadResponse(c.in, nil)
	if err != nil {
		return false, fmt.Errorf("%s: no answer: %w", target, err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(response.Body, 500))
		return false, fmt.Errorf("%s: %s: %s", target, response.Status, text)
	}
	if into == nil {
		_, err = io.Copy(io.Discard, response.Body)
	} else {
		_, err = into.ReadFrom(response.Body)
	}
	return !response.Close, err
}
