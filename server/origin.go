package server

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"

	"github.com/runnel-stream/runnel/internal/bootclock"
	"github.com/runnel-stream/runnel/internal/wire"
)

// connKey is the context key of the *earlyConn that a request came by.
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

// originOf returns how old a request is, and its connection. The age of a request over HTTP/2
// counts from its whole head on, which is there within seconds of its first byte; that of others
// from the first byte. The error says that there was a pause since the connection was accepted: the
// request is not to be served.
//
// A request that came by no connection of Serve's, but by another server, is as old as this call.
func (s *Server) originOf(r *http.Request) (o wire.Origin, conn *earlyConn, err error) {
	now := bootclock.Now()
	conn, ok := r.Context().Value(connKey{}).(*earlyConn)
	if !ok {
		return wire.Origin{Began: now, Pauses: s.pauses.Count()}, nil, nil
	}
	o = wire.Origin{Began: now, Pauses: conn.pauses}
	if r.ProtoMajor < 2 {
		o.Began = conn.firstByte(now)
	}
	return o, conn, s.pauses.Check(conn.pauses, now)
}

// firstByte returns when the first byte of the request was read that is being served; now if no
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

// nextRequest says that the next bytes to be read are of another request. If bytes of it are in a
// buffer already, they came with the last read.
func (c *earlyConn) nextRequest(buffered bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.began = bootclock.Instant{}
	if buffered {
		c.began = c.read
	}
}

// serve counts the calls of the connection that are under way.
func (c *earlyConn) serve(by int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.serving += by
}

// lastRead returns when the last bytes were read.
func (c *earlyConn) lastRead() bootclock.Instant {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.read
}

// follows reports whether serveHTTP has to say when the connection's next request begins: the
// shortcut does so by itself, and over HTTP/2 requests do not follow one another.
func follows(r *http.Request) bool {
	return r.ProtoMajor < 2 && r.Context().Value(shortcutKey{}) == nil
}
