package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"
)

// Time-outs of a connection. Answers have defaultWriteTimeout.
const (
	headerTimeout = 10 * time.Second // of a request's head, of a TLS handshake, of a first byte
	readTimeout   = 2 * time.Minute  // of a request with its body
	idleTimeout   = 3 * time.Minute  // longer than clients keep idle connections
	maxHeader     = 64 << 10
)

// Serve answers on the listener, which it closes, until ctx ends: HTTP/1.1 and unencrypted
// HTTP/2 by prior knowledge; with Config.TLS also both of them encrypted, and unencrypted only
// what came to a loopback address. Then calls that it has accepted finish, for
// at most Config.ShutdownTimeout, event streams end at the next event, and idle connections are
// closed. It returns nil after that, and an error if the listener failed or calls had to be cut
// off. The data directory stays open: see Close.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	base, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	base = context.WithValue(base, drainKey{}, ctx.Done())
	s.pauses.Start(s.paused)
	t := s.newTransport(base, listener, s.Handler())
	defer t.door.Wait()
	t.door.open()
	ended := make(chan error, 1)
	go func() { ended <- t.http.Serve(t.door) }()
	select {
	case err := <-ended:
		return errors.Join(fmt.Errorf("serve %s: %w", listener.Addr(), err), t.cut())
	case <-ctx.Done():
	}
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.cfg.ShutdownTimeout)
	defer cancel()
	err := t.shutdown(closing)
	<-ended //nolint:errcheck // it is http.ErrServerClosed
	if errors.Is(err, context.DeadlineExceeded) {
		return errors.Join(fmt.Errorf("serve %s: calls were still under way after %v and have "+
			"been cut off", listener.Addr(), s.cfg.ShutdownTimeout), t.cut())
	}
	return err
}

// transport is what Serve runs on one listener: the door knows what is TLS, what is not begins in
// the shortcut past http, and http has the rest.
type transport struct {
	door *door
	past *shortcut
	http *http.Server
}

// shutdown begins no further call, and returns when those under way have finished.
func (t *transport) shutdown(ctx context.Context) error {
	err := t.door.Close()
	t.past.close()
	return errors.Join(err, t.http.Shutdown(ctx), t.past.wait(ctx))
}

// cut breaks off all connections.
func (t *transport) cut() error {
	t.past.cut()
	return t.http.Close()
}

// newTransport leaves it to the caller to open the door.
func (s *Server) newTransport(
	base context.Context, listener net.Listener, calls http.Handler,
) transport {
	door := newDoor(listener, tlsSettings(s.cfg.TLS), s.pauses, s.cfg.Logger)
	if s.cfg.TLS != nil {
		calls = s.refusePlain(calls)
	}
	past := &shortcut{
		handler: calls, hand: door.hand, date: s.date, logger: s.cfg.Logger,
		conns: map[*shortcutConn]struct{}{},
	}
	door.plain = func(conn *earlyConn) { past.take(base, conn) }
	fresh := &freshConns{conns: map[net.Conn]struct{}{}}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	h := &http.Server{
		Handler:           calls,
		BaseContext:       func(net.Listener) context.Context { return base },
		ConnContext:       withConn,
		ConnState:         fresh.changed,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          slog.NewLogLogger(s.cfg.Logger.Handler(), slog.LevelDebug),
		Protocols:         protocols,
		HTTP2:             http2Settings(s.writeTimeout),
	}
	h.RegisterOnShutdown(fresh.expire) // once no further connection is accepted
	return transport{door: door, past: past, http: h}
}

// freshConns knows the connections that have not sent a request yet, but a first byte, or a TLS
// handshake. http.Server.Shutdown waits for them for 5 s.
type freshConns struct {
	mu    sync.Mutex
	conns map[net.Conn]struct{}
}

func (f *freshConns) changed(conn net.Conn, now http.ConnState) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now == http.StateNew {
		f.conns[conn] = struct{}{}
	} else {
		delete(f.conns, conn)
	}
}

// expire ends the wait for requests. One that has come meanwhile is answered: only reads end.
func (f *freshConns) expire() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for conn := range f.conns {
		if encrypted, ok := conn.(*tls.Conn); ok {
			conn = encrypted.NetConn()
		}
		conn.(interface{ expire() }).expire()
	}
}
