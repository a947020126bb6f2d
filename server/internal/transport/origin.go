package transport

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"

	"github.com/runnel-stream/runnel/internal/bootclock"
	"github.com/runnel-stream/runnel/server/internal/pause"
)

// connKey is the context key of a request's *earlyConn.
type connKey struct{}

// withConn is an http.Server.ConnContext.
func withConn(ctx context.Context, conn net.Conn) context.Context {
	if encrypted, ok := conn.(*tls.Conn); ok {
		conn = encrypted.NetConn()
	}
	if early, ok := conn.(*earlyConn); ok {
		ctx = context.WithValue(ctx, connKey{}, early)
	}
	return ctx
}

// Request is the connection's side of a request that a handler serves.
type Request struct {
	// Began is the time at which the request's first byte was read. Over HTTP/2 it is the time at
	// which its whole head was there, which is within seconds of it. For another server's request
	// it is the time of the call of Begin.
	Began bootclock.Instant
	// Pauses is the number of pauses of the process before the connection was accepted.
	Pauses uint64

	conn    *earlyConn    // nil: another server's
	watched *shortcutConn // whose client is watched from BodyRead on; nil: net/http watches it
	follows bool          // see follows
	whole   bool          // BodyRead was called
	read    bootclock.Instant
}

// Begin begins the service of a request. The caller calls End. An error means that there was a
// pause since the connection was accepted: the request may be of any age, and must not be served.
func Begin(r *http.Request, pauses *pause.Watch) (*Request, error) {
	now := bootclock.Now()
	conn, ok := r.Context().Value(connKey{}).(*earlyConn)
	if !ok {
		return &Request{Began: now, Pauses: pauses.Count()}, nil
	}
	q := &Request{Began: now, Pauses: conn.pauses, conn: conn, follows: follows(r)}
	if r.ProtoMajor < 2 {
		q.Began = conn.firstByte(now)
	}
	if err := pauses.Check(conn.pauses, now); err != nil {
		return nil, err
	}
	q.watched, _ = r.Context().Value(shortcutKey{}).(*shortcutConn)
	conn.serve(+1)
	return q, nil
}

// BodyRead notes that the request's body was read: later bytes belong to the connection's next
// request.
func (q *Request) BodyRead() {
	if q.follows {
		q.whole, q.read = true, q.conn.lastRead()
	}
	if q.watched != nil {
		q.watched.watchClient()
	}
}

// End ends the service of the request.
func (q *Request) End() {
	if q.conn == nil {
		return
	}
	if q.watched != nil {
		q.watched.unwatchClient()
	}
	if q.follows {
		q.conn.nextRequest(q.whole && q.conn.lastRead() != q.read)
	}
	q.conn.serve(-1)
}

// firstByte returns the time at which the first byte of the current request was read; now if no
// byte was read since the request before.
func (c *earlyConn) firstByte(now bootclock.Instant) bootclock.Instant {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case !c.began.IsZero():
		return c.began
	case !c.read.IsZero():
		return c.read
	}
	return now
}

// stamp notes that bytes have been read.
func (c *earlyConn) stamp() {
	now := bootclock.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.read = now
	if c.began.IsZero() {
		c.began = now
	}
}

// nextRequest notes that the next bytes belong to another request. If bytes of it are in a buffer
// already, they came with the last read.
func (c *earlyConn) nextRequest(buffered bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.began = bootclock.Instant{}
	if buffered {
		c.began = c.read
	}
}

// serve counts the connection's calls in progress.
func (c *earlyConn) serve(by int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.serving += by
}

// lastRead returns the time at which the last bytes were read.
func (c *earlyConn) lastRead() bootclock.Instant {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.read
}

// follows reports whether End has to note the beginning of the connection's next request. The
// shortcut notes it by itself, and over HTTP/2 requests do not follow one another.
func follows(r *http.Request) bool {
	return r.ProtoMajor < 2 && r.Context().Value(shortcutKey{}) == nil
}
