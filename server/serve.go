package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"
)

// Time-outs of a connection. Answers have writeTimeout.
const (
	headerTimeout = 10 * time.Second
	readTimeout   = 2 * time.Minute // of a request with its body
	idleTimeout   = 3 * time.Minute // longer than clients keep idle connections
	maxHeader     = 64 << 10
)

// Serve answers on the listener, which it closes, until ctx ends. Then calls that it has
// accepted finish, for at most Config.ShutdownTimeout, and idle connections are closed. It
// returns nil after that, and an error if the listener failed or calls had to be cut off. The
// data directory stays open: see Close.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	base, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	fresh := &freshConns{conns: map[net.Conn]struct{}{}}
	h := &http.Server{
		Handler:           s.Handler(),
		BaseContext:       func(net.Listener) context.Context { return base },
		ConnState:         fresh.changed,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          slog.NewLogLogger(s.cfg.Logger.Handler(), slog.LevelDebug),
	}
	h.RegisterOnShutdown(fresh.expire) // once no further connection is accepted
	ended := make(chan error, 1)
	go func() { ended <- h.Serve(listener) }()
	select {
	case err := <-ended:
		return errors.Join(fmt.Errorf("serve %s: %w", listener.Addr(), err), h.Close())
	case <-ctx.Done():
	}
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.cfg.ShutdownTimeout)
	defer cancel()
	err := h.Shutdown(closing)
	<-ended //nolint:errcheck // it is http.ErrServerClosed
	if errors.Is(err, context.DeadlineExceeded) {
		return errors.Join(fmt.Errorf("serve %s: calls were still under way after %v and have "+
			"been cut off", listener.Addr(), s.cfg.ShutdownTimeout), h.Close())
	}
	return err
}

// freshConns knows the connections that have not sent a byte yet. http.Server.Shutdown waits
// for them for 5 s, and clients open such connections in advance.
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

// expire ends the wait for first bytes. A request that has come meanwhile is answered: only
// reads end.
func (f *freshConns) expire() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for conn := range f.conns {
		_ = conn.SetReadDeadline(time.Unix(1, 0))
	}
}
