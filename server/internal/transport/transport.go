// Package transport takes requests off a listener and hands them to an http.Handler: HTTP/1.1 and
// HTTP/2, with TLS and without. It records when each request began, closes the connections that
// were open before a pause of the process, and finishes accepted calls when it shuts down.
//
// Plain calls over unencrypted HTTP/1.1 do not go through net/http's server but through a shorter
// path of this package (see shortcut). A handler sees no difference, and nothing outside this
// package knows of it. A call on that path learns that its client has gone, but not in its first
// second (see watchAfter).
package transport

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

	"github.com/runnel-stream/runnel/server/internal/pause"
)

// Time-outs of a connection. Answers have Config.WriteTimeout.
const (
	headerTimeout = 10 * time.Second // of a request's head, of a TLS handshake, of a first byte
	readTimeout   = 2 * time.Minute  // of a request with its body
	idleTimeout   = 3 * time.Minute  // longer than clients keep idle connections
	maxHeader     = 64 << 10
)

// Config configures Serve. All fields but TLS are required.
type Config struct {
	Handler http.Handler
	// TLS encrypts: HTTP/2 and HTTP/1.1 are offered. Connections to a loopback address may then
	// still be plain. nil: all connections are plain.
	TLS *tls.Config
	// Pauses is the watch of the process. The caller starts it.
	Pauses *pause.Watch
	// Date returns the header Date of an answer that is sent now. transport does not change it.
	Date func() []string
	// WriteTimeout is the time that a client of HTTP/2 may take to read the sent bytes.
	WriteTimeout time.Duration
	// Files is the number of files that the rest of the process may have open.
	Files int
	// ShutdownTimeout is the time for calls to finish once Serve's context has ended.
	ShutdownTimeout time.Duration
	Logger          *slog.Logger
}

// Serve answers on the listener, which it closes, until ctx ends. Then Draining's channel is
// closed, idle connections are closed, and accepted calls finish, for at most ShutdownTimeout. It
// returns nil after that, and an error if the listener failed or calls had to be cut off.
func Serve(ctx context.Context, listener net.Listener, cfg Config) error {
	base, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	base = context.WithValue(base, drainKey{}, ctx.Done())
	t := newTransport(base, listener, cfg)
	defer t.door.Wait()
	t.door.open()
	ended := make(chan error, 1)
	go func() { ended <- t.http.Serve(t.door) }()
	select {
	case err := <-ended:
		return errors.Join(fmt.Errorf("serve %s: %w", listener.Addr(), err), t.cut())
	case <-ctx.Done():
	}
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), cfg.ShutdownTimeout)
	defer cancel()
	err := t.shutdown(closing)
	<-ended //nolint:errcheck // it is http.ErrServerClosed
	if errors.Is(err, context.DeadlineExceeded) {
		return errors.Join(fmt.Errorf("serve %s: calls were still under way after %v and have "+
			"been cut off", listener.Addr(), cfg.ShutdownTimeout), t.cut())
	}
	return err
}

// drainKey is the context key of a channel (<-chan struct{}). The channel is closed when the
// shutdown of the request's listener begins.
type drainKey struct{}

// Draining returns the channel for a request's context that is closed when the shutdown of the
// request's listener begins. It is nil, and so never closed, for a request of another server.
func Draining(ctx context.Context) <-chan struct{} {
	drained, _ := ctx.Value(drainKey{}).(<-chan struct{})
	return drained
}

// transport serves one listener. The door recognises TLS connections. The others begin in the
// shortcut, and http serves the rest.
type transport struct {
	door *door
	past *shortcut
	http *http.Server
}

// shutdown refuses further calls, and returns when those in progress have finished.
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
func newTransport(base context.Context, listener net.Listener, cfg Config) transport {
	door := newDoor(listener, tlsSettings(cfg.TLS), cfg.Pauses, cfg.Logger)
	door.most = connsFor(cfg.Files)
	calls := cfg.Handler
	if cfg.TLS != nil {
		calls = refusePlain(calls, cfg.Date)
	}
	past := &shortcut{
		handler: calls, hand: door.hand, date: cfg.Date, logger: cfg.Logger,
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
		ErrorLog:          slog.NewLogLogger(cfg.Logger.Handler(), slog.LevelDebug),
		Protocols:         protocols,
		HTTP2:             http2Settings(cfg.WriteTimeout),
	}
	h.RegisterOnShutdown(fresh.expire) // once no further connection is accepted
	return transport{door: door, past: past, http: h}
}

// freshConns holds the connections without a request so far, but with a first byte, or a TLS
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

// expire ends the wait for requests. It ends reads only, so a request that has come meanwhile is
// answered.
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
