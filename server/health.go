package server

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"

	"github.com/runnel-stream/runnel/internal/origin"
)

// health answers 200 "ok" if calls are served, and otherwise 503 with the reason. Further lines say
// so while the server's clock and the system's differ by more than a minute, and while the memory
// for data is nearly full.
func (s *Server) health(w http.ResponseWriter, _ *http.Request) {
	s.allow(w)
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	if reason := s.unhealthy(); reason != "" {
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = fmt.Fprintln(w, reason)
		return
	}
	_, _ = io.WriteString(w, "ok\n"+s.clockLine()+s.memoryLine())
}

// memoryLine returns the line on a nearly full memory, or "". Even a full one does not make the
// server unhealthy: whoever ends unhealthy servers would lose all data.
func (s *Server) memoryLine() string {
	engine, now := s.enter()
	if now != ready {
		return ""
	}
	defer s.leave()
	if text := engine.memory.Warning(); text != "" {
		return text + "\n"
	}
	return ""
}

// clockLine returns the line on the difference of the clocks, or "".
func (s *Server) clockLine() string {
	clock := s.clock.Load()
	if clock == nil {
		return ""
	}
	ahead, differs, accepted := clock.Difference()
	side := "ahead of"
	if ahead < 0 {
		side = "behind"
	}
	switch {
	case !differs:
		return ""
	case accepted:
		return fmt.Sprintf("the server's clock is %v %s the system's clock, which --accept-clock "+
			"says is right: data expire by elapsed time\n", ahead.Abs(), side)
	default:
		return fmt.Sprintf("the server's clock is %v %s the system's clock: no data expire until "+
			"they agree; if the system's clock is right, restart with --accept-clock\n",
			ahead.Abs(), side)
	}
}

func (s *Server) unhealthy() string {
	s.mu.Lock()
	engine, now := s.mu.engine, s.mu.state
	s.mu.Unlock()
	switch now {
	case starting:
		return "starting"
	case closed:
		return "shutting down"
	}
	if err := engine.log.Check(); err != nil {
		return err.Error()
	}
	if err := engine.shards.Err(); err != nil {
		return err.Error()
	}
	return ""
}

// IsLoopback reports whether a host to listen on can be reached from this machine alone:
// localhost, a name under it, 127.0.0.0/8 or ::1, with or without a port. An empty one, every
// interface, is not.
func IsLoopback(host string) bool {
	if bare, _, err := net.SplitHostPort(host); err == nil {
		host = bare
	}
	return origin.IsLocal(strings.Trim(host, "[]"))
}
