package server

import (
	"context"
	"net"

	"github.com/runnel-stream/runnel/server/internal/transport"
	"github.com/runnel-stream/runnel/server/internal/wal"
)

// Serve answers on the listener, which it closes, until ctx ends. It speaks HTTP/1.1, and
// unencrypted HTTP/2 by prior knowledge. With Config.TLS it speaks both encrypted, and unencrypted
// only with clients that connect to a loopback address.
//
// After ctx has ended, accepted calls finish, for at most Config.ShutdownTimeout; event streams end
// at the next event; and idle connections are closed. Serve then returns nil, or an error if the
// listener failed or calls had to be cut off. The data directory stays open: see Close.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	s.pauses.Start(s.paused)
	returned := make(chan struct{})
	defer close(returned)
	defer context.AfterFunc(ctx, func() { s.rush(returned) })()
	return transport.Serve(ctx, listener, s.transport())
}

// rush lets puts go on that wait for the log's pace. Otherwise they could wait for longer than
// Config.ShutdownTimeout.
func (s *Server) rush(until <-chan struct{}) {
	s.mu.Lock()
	engine := s.mu.engine
	s.mu.Unlock()
	if engine == nil {
		return
	}
	defer wal.Rush(engine.log)()
	<-until
}

func (s *Server) transport() transport.Config {
	return transport.Config{
		Handler: s.Handler(), TLS: s.cfg.TLS, Pauses: s.pauses, Date: s.date,
		Files: otherFiles + openSegments(), WriteTimeout: s.writeTimeout,
		ShutdownTimeout: s.cfg.ShutdownTimeout, Logger: s.cfg.Logger,
	}
}

// otherFiles is the number of files that the server has open beside connections and segments: the
// log's, snapshots, the lock, what the runtime needs.
const otherFiles = 64

// openSegments returns the number of segment files to keep open: a quarter of the files that the
// process may have, and not more than are useful.
func openSegments() int { return max(16, min(8192, transport.FileLimit()/4)) }
