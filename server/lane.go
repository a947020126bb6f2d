package server

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/runnel-stream/runnel/internal/awswire"
)

// lane serves plain calls, which is what SDKs send over unencrypted HTTP/1.1: POST / with a
// body of a known length, answered by one document. The first request of a connection that is
// anything else goes to net/http's server, with the connection, as if the lane had not been there.
//
// It is there since a server of net/http watches a connection while a call of it is served, with
// a goroutine and four deadlines for each, and so takes a third of the processor time of a small
// call: see bench/README.md. Requests are read by net/http's own ReadRequest here too, and
// answered by its Header.Write. What the lane lacks is that watch: a call whose client has gone
// is served to its end, unless it waits on purpose (watchClient).
type lane struct {
	handler http.Handler
	hand    func(conn net.Conn)
	logger  *slog.Logger

	closing atomic.Bool // no request is begun, and no connection comes in

	mu    sync.Mutex
	conns map[*laneConn]struct{}
	empty chan struct{} // made by wait, closed once there are no conns
}

// laneKey is the context key of the *laneConn that a call came by.
type laneKey struct{}

// laneConn is a connection in the lane. It belongs to its goroutine, but for state.
type laneConn struct {
	*earlyConn
	state  atomic.Int32 // of laneState
	in     *bufio.Reader
	remote string
	readBy time.Time // the read deadline
	answer laneAnswer
}

type laneState = int32

const (
	laneAnswering laneState = iota
	laneWaiting             // for a request: the connection may be closed
	laneEnded
)

const (
	// laneBuffer holds a request's head, which has to come in one piece to be plain.
	laneBuffer = 8 << 10
	// lookAhead is how many bytes net/http waits for between requests.
	lookAhead = 4
	// lingerTime is how long a client may go on sending after its last answer: net/http's.
	lingerTime = 500 * time.Millisecond
)

var endOfHead = []byte("\r\n\r\n")

// take serves a connection, on a goroutine of its own. ctx is that of all its calls.
func (l *lane) take(ctx context.Context, conn *earlyConn) {
	c := &laneConn{
		earlyConn: conn, in: bufio.NewReaderSize(conn, laneBuffer),
		remote: conn.RemoteAddr().String(),
	}
	c.answer = laneAnswer{lane: l, conn: c, header: http.Header{}}
	if !l.enter(c) {
		_ = c.Close()
		return
	}
	ctx = context.WithValue(ctx, http.LocalAddrContextKey, conn.LocalAddr())
	ctx = context.WithValue(ctx, laneKey{}, c)
	go func() {
		handOn := l.serve(ctx, c)
		l.leave(c)
		if handOn {
			l.hand(c.earlyConn)
			return
		}
		_ = c.Close()
	}()
}

func (l *lane) enter(c *laneConn) (ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closing.Load() {
		return false
	}
	l.conns[c] = struct{}{}
	return true
}

func (l *lane) leave(c *laneConn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.conns, c)
	if len(l.conns) == 0 && l.empty != nil {
		close(l.empty)
		l.empty = nil
	}
}

// serve serves calls until the connection ends, or is to be handed on with its next request.
func (l *lane) serve(ctx context.Context, c *laneConn) (handOn bool) {
	// The door has read the first byte of a request. If no second one comes, it is net/http that
	// knows what to say.
	if !c.wait(l, headerTimeout, 2) && c.in.Buffered() == 0 {
		return false
	}
	for {
		r := c.next(ctx)
		if r == nil {
			return true
		}
		if !l.call(c, r) || !c.wait(l, idleTimeout, lookAhead) {
			return false
		}
		c.skipLineEnds()
	}
}

// wait returns once so many bytes of a request have come; not ok if they do not, or none is to be
// read. It waits for the timeout, or up to an eighth longer: a new deadline for every request has
// its price.
func (c *laneConn) wait(l *lane, timeout time.Duration, bytes int) (ok bool) {
	c.state.Store(laneWaiting)
	if l.closing.Load() { // this, or close sees the state
		return false
	}
	if now := time.Now(); c.readBy.Sub(now) < timeout {
		c.readUntil(now.Add(timeout + timeout/8))
	}
	_, err := c.in.Peek(bytes)
	return c.state.CompareAndSwap(laneWaiting, laneAnswering) && err == nil
}

func (c *laneConn) readUntil(deadline time.Time) {
	c.readBy = deadline
	_ = c.SetReadDeadline(deadline)
}

// skipLineEnds skips what old clients send behind a body, as net/http does (RFC 9112, 2.2).
func (c *laneConn) skipLineEnds() {
	ahead, _ := c.in.Peek(lookAhead)
	_, _ = c.in.Discard(len(ahead) - len(bytes.TrimLeft(ahead, "\r\n")))
}

// next reads a request's head. nil means that it is not plain: then the connection is as if
// nothing of the request had been read, and without deadlines.
func (c *laneConn) next(ctx context.Context) *http.Request {
	come, _ := c.in.Peek(c.in.Buffered())
	if head, _, whole := bytes.Cut(come, endOfHead); whole && isPlainHead(head) {
		// The head is in the buffer: reading it does not change what come holds.
		r, err := http.ReadRequest(c.in)
		if err == nil && isPlain(r) {
			r.RemoteAddr = c.remote
			return r.WithContext(ctx)
		}
	}
	c.early = bytes.Clone(come)
	_ = c.SetDeadline(time.Time{})
	return nil
}

// isPlainHead finds what ReadRequest lets pass and net/http's server does not: spaces in names,
// which folded lines have too, and a Host that is there twice, or no host.
func isPlainHead(head []byte) bool {
	lines, ok := bytes.CutPrefix(head, []byte("POST / HTTP/1.1\r\n"))
	hosts := 0
	for line := range bytes.SplitSeq(lines, []byte("\r\n")) {
		name, value, _ := bytes.Cut(line, []byte(":"))
		if bytes.ContainsAny(name, " \t") {
			return false
		}
		if len(name) == len("Host") && bytes.EqualFold(name, []byte("Host")) {
			hosts++
			ok = ok && isHost(bytes.TrimSpace(value))
		}
	}
	return ok && hosts == 1
}

// isHost reports whether a host is one of those that are met: a name or an address, and a port.
func isHost(host []byte) bool {
	for _, c := range host {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '-' || c > ':' || c == '/') &&
			c != '[' && c != ']' {
			return false
		}
	}
	return len(host) > 0
}

// isPlain reports whether the lane knows how to serve a request with a plain head.
func isPlain(r *http.Request) bool {
	connection := r.Header["Connection"]
	return r.ContentLength >= 0 && r.Header["Expect"] == nil &&
		(connection == nil || strings.EqualFold(strings.Join(connection, ","), "keep-alive")) &&
		!awswire.Streams(r.Header.Get("X-Amz-Target"))
}

// call serves one call, and reports whether the connection can have another one.
func (l *lane) call(c *laneConn, r *http.Request) (goOn bool) {
	if r.ContentLength > int64(c.in.Buffered()) {
		c.readUntil(time.Now().Add(readTimeout))
	}
	if !l.handle(c, r) || c.answer.finish() != nil {
		return false
	}
	if c.answer.last {
		c.linger(r.Body)
		return false
	}
	return r.Body.Close() == nil // reads what the handler has left of it
}

// handle runs the handler. It is not ok if the connection is to break off without an answer.
func (l *lane) handle(c *laneConn, r *http.Request) (ok bool) {
	defer func() {
		thrown := recover()
		if thrown == nil {
			return
		}
		ok = false
		if err, isError := thrown.(error); !isError || !errors.Is(err, http.ErrAbortHandler) {
			l.logger.Error("a request's handler failed", "from", c.remote, "panic", thrown,
				"stack", string(debug.Stack()))
		}
	}()
	c.answer.begin()
	l.handler.ServeHTTP(&c.answer, r)
	return c.answer.status != 0 // otherwise the client has gone, or its body is not whole
}

// watchClient returns a context that ends when the client of a call goes, also in the lane. The
// request's body must have been read. The caller calls stop, which waits.
func watchClient(ctx context.Context) (watched context.Context, stop func()) {
	watched, cancel := context.WithCancel(ctx)
	c, ok := ctx.Value(laneKey{}).(*laneConn)
	if !ok {
		return watched, cancel // net/http watches it
	}
	c.readUntil(time.Time{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, err := c.in.Peek(1)
		if err != nil {
			cancel() // by stop, or by the client
		}
	}()
	return watched, func() {
		c.readUntil(time.Unix(1, 0))
		<-done
		cancel()
	}
}

// linger ends a connection so that its client can read the answer: bytes that come to a closed
// connection would take it away again. A client of whose body nothing is missing is not waited for.
func (c *laneConn) linger(body io.Closer) {
	_ = c.CloseWrite()
	c.readUntil(time.Now().Add(lingerTime))
	_ = body.Close() // reads the rest
}

// close begins no further request, and closes idle connections.
func (l *lane) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closing.Store(true)
	for c := range l.conns {
		if c.state.CompareAndSwap(laneWaiting, laneEnded) {
			_ = c.Close()
		}
	}
}

// wait returns, after close, when no connection is left, or ctx has ended.
func (l *lane) wait(ctx context.Context) error {
	empty := make(chan struct{})
	l.mu.Lock()
	if len(l.conns) == 0 {
		close(empty)
	} else {
		l.empty = empty
	}
	l.mu.Unlock()
	select {
	case <-empty:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// cut breaks off all connections, and does not wait for their calls.
func (l *lane) cut() {
	l.close()
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.conns {
		_ = c.Close()
	}
}
