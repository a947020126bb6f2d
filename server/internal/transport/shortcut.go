package transport

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

	"github.com/runnel-stream/runnel/internal/wire"
)

// shortcut serves plain calls, as SDKs send them over unencrypted HTTP/1.1: POST / with a body of a
// known length, answered by one document. At the first other request, the connection passes to
// net/http's server, as if there were no shortcut.
//
// The reason is speed: net/http watches a connection during a call, with a goroutine and several
// deadlines for each call, and so takes up to a quarter of a small call's processor time: see
// bench/README.md. The shortcut too reads requests with net/http's ReadRequest, and answers with
// its Header.Write. Only the watch comes later: if the client leaves in the first second of a call,
// the call may be served to its end.
type shortcut struct {
	handler http.Handler
	hand    func(conn net.Conn)
	date    func() []string // the header Date
	logger  *slog.Logger

	closing atomic.Bool // no request and no connection begins

	mu    sync.Mutex
	conns map[*shortcutConn]struct{}
	empty chan struct{} // made by wait, closed once there are no conns
}

// shortcutKey is the context key of a call's *shortcutConn.
type shortcutKey struct{}

// shortcutConn is a connection that takes the shortcut. It belongs to its goroutine, except for
// state.
type shortcutConn struct {
	conn   *earlyConn
	state  atomic.Int32 // of shortcutState
	in     *bufio.Reader
	remote string
	readBy time.Time // the read deadline
	// bodyIsHere is set if the body of the request in progress is in a buffer.
	bodyIsHere bool
	watch      clientWatch
	answer     shortcutAnswer
}

type shortcutState = int32

const (
	shortcutBusy    shortcutState = iota
	shortcutWaiting               // for a request: the connection may be closed
	shortcutEnded
)

const (
	// headBuffer holds a request's head. A plain head has to come in one piece.
	headBuffer = 8 << 10
	// lookAhead is the number of bytes that net/http waits for between requests.
	lookAhead = 4
	// lingerTime is how long a client may go on sending after its last answer, as in net/http.
	lingerTime = 500 * time.Millisecond
)

var endOfHead = []byte("\r\n\r\n")

// take serves a connection, on a goroutine of its own. ctx is that of all its calls.
func (s *shortcut) take(ctx context.Context, conn *earlyConn) {
	c := &shortcutConn{
		conn: conn, in: bufio.NewReaderSize(conn, headBuffer),
		remote: conn.RemoteAddr().String(),
	}
	c.answer = shortcutAnswer{shortcut: s, conn: c, header: http.Header{}}
	if !s.enter(c) {
		_ = c.conn.Close()
		return
	}
	ctx = context.WithValue(ctx, http.LocalAddrContextKey, conn.LocalAddr())
	ctx = context.WithValue(ctx, connKey{}, conn)
	ctx = context.WithValue(ctx, shortcutKey{}, c)
	ctx, c.watch.gone = context.WithCancel(ctx)
	go func() {
		handOn := s.serve(ctx, c)
		c.watch.gone()
		s.leave(c)
		if handOn {
			s.hand(c.conn)
			return
		}
		_ = c.conn.Close()
	}()
}

func (s *shortcut) enter(c *shortcutConn) (ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing.Load() {
		return false
	}
	s.conns[c] = struct{}{}
	return true
}

func (s *shortcut) leave(c *shortcutConn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
	if len(s.conns) == 0 && s.empty != nil {
		close(s.empty)
		s.empty = nil
	}
}

// serve serves calls until the connection ends, or its next request needs net/http.
func (s *shortcut) serve(ctx context.Context, c *shortcutConn) (handOn bool) {
	// The door has read the first byte of a request. If no second one comes, net/http gives the
	// right answer.
	if !c.wait(s, headerTimeout, 2) && c.in.Buffered() == 0 {
		return false
	}
	for {
		r := c.next(ctx)
		if r == nil {
			return true
		}
		if !s.call(c, r) {
			return false
		}
		c.conn.nextRequest(c.in.Buffered() > 0)
		if !c.wait(s, idleTimeout, lookAhead) {
			return false
		}
		c.skipLineEnds()
	}
}

// wait returns once n bytes of a request have come; not ok if they do not come, or if no further
// request is to be read. It waits for the timeout, or up to an eighth longer: a new deadline for
// every request is expensive.
func (c *shortcutConn) wait(s *shortcut, timeout time.Duration, n int) (ok bool) {
	c.state.Store(shortcutWaiting)
	if s.closing.Load() { // this, or close sees the state
		return false
	}
	if now := time.Now(); c.readBy.Sub(now) < timeout {
		c.readUntil(now.Add(timeout + timeout/8))
	}
	_, err := c.in.Peek(n)
	return c.state.CompareAndSwap(shortcutWaiting, shortcutBusy) && err == nil
}

func (c *shortcutConn) readUntil(deadline time.Time) {
	c.readBy = deadline
	_ = c.conn.SetReadDeadline(deadline)
}

// skipLineEnds skips the line ends that old clients send behind a body, as net/http does (RFC 9112,
// 2.2).
func (c *shortcutConn) skipLineEnds() {
	ahead, _ := c.in.Peek(lookAhead)
	_, _ = c.in.Discard(len(ahead) - len(bytes.TrimLeft(ahead, "\r\n")))
}

// next reads a request's head. nil means that it is not plain: then the connection is restored as
// before the request, and without deadlines.
func (c *shortcutConn) next(ctx context.Context) *http.Request {
	come, _ := c.in.Peek(c.in.Buffered())
	if head, _, whole := bytes.Cut(come, endOfHead); whole && isPlainHead(head) {
		// The head is in the buffer: reading it leaves come unchanged.
		r, err := http.ReadRequest(c.in)
		if err == nil && isPlain(r) {
			r.RemoteAddr = c.remote
			return r.WithContext(ctx)
		}
	}
	c.conn.early = bytes.Clone(come)
	_ = c.conn.SetDeadline(time.Time{})
	return nil
}

// isPlainHead reports whether a head is that of a plain call. It also finds the faults that
// ReadRequest lets pass and net/http's server refuses: spaces in names, which folded lines have
// too, and a repeated or missing Host.
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

// isHost reports whether a host has an ordinary form: a name or an address, and a port.
func isHost(host []byte) bool {
	for _, c := range host {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '-' || c > ':' || c == '/') &&
			c != '[' && c != ']' && c != '_' {
			return false
		}
	}
	return len(host) > 0
}

// isPlain reports whether a request with a plain head can take the shortcut.
func isPlain(r *http.Request) bool {
	connection := r.Header["Connection"]
	return r.ContentLength >= 0 && r.Header["Expect"] == nil &&
		(connection == nil || strings.EqualFold(strings.Join(connection, ","), "keep-alive")) &&
		!wire.Streams(r.Header.Get("X-Amz-Target"))
}

// call serves one call, and reports whether the connection can serve another one.
func (s *shortcut) call(c *shortcutConn, r *http.Request) (goOn bool) {
	if c.bodyIsHere = r.ContentLength <= int64(c.in.Buffered()); !c.bodyIsHere {
		c.readUntil(time.Now().Add(readTimeout))
	}
	if !s.handle(c, r) || c.answer.finish() != nil {
		return false
	}
	if c.answer.last {
		c.linger(r.Body)
		return false
	}
	return r.Body.Close() == nil // reads the rest that the handler has left
}

// handle runs the handler. It is not ok if the connection must break off without an answer.
func (s *shortcut) handle(c *shortcutConn, r *http.Request) (ok bool) {
	defer func() {
		thrown := recover()
		if thrown == nil {
			return
		}
		ok = false
		if err, isError := thrown.(error); !isError || !errors.Is(err, http.ErrAbortHandler) {
			s.logger.Error("a request's handler failed", "from", c.remote, "panic", thrown,
				"stack", string(debug.Stack()))
		}
	}()
	c.answer.begin()
	s.handler.ServeHTTP(&c.answer, r)
	return c.answer.status != 0 // otherwise the client has gone, or its body is not whole
}

// linger ends a connection so that its client can read the answer: if further bytes came to a
// closed connection, the client could lose the answer. It does not wait if the whole body has come.
func (c *shortcutConn) linger(body io.Closer) {
	_ = c.conn.CloseWrite()
	c.readUntil(time.Now().Add(lingerTime))
	_ = body.Close() // reads the rest
}

// close refuses further requests, and closes idle connections.
func (s *shortcut) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closing.Store(true)
	for c := range s.conns {
		if c.state.CompareAndSwap(shortcutWaiting, shortcutEnded) {
			_ = c.conn.Close()
		}
	}
}

// wait returns, after close, when no connection is left, or ctx has ended.
func (s *shortcut) wait(ctx context.Context) error {
	empty := make(chan struct{})
	s.mu.Lock()
	if len(s.conns) == 0 {
		close(empty)
	} else {
		s.empty = empty
	}
	s.mu.Unlock()
	select {
	case <-empty:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// cut breaks off all connections, and does not wait for their calls.
func (s *shortcut) cut() {
	s.close()
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		_ = c.conn.Close()
	}
}
