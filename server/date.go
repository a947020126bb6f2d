package server

import (
	"net/http"
	"time"

	"github.com/runnel-stream/runnel/server/internal/transport"
)

// dateLine is the text of the header Date for one second.
type dateLine struct {
	second int64
	text   []string // one value, as headers have it
}

// now returns the server's time: see server/internal/serverclock. Before Start it is the system's
// time.
func (s *Server) now() time.Time {
	if clock := s.clock.Load(); clock != nil {
		return clock.Now()
	}
	return s.cfg.Wall()
}

// date returns the header Date for an answer that is sent now. Callers share the slice: do not
// change it.
func (s *Server) date() []string {
	now := s.now()
	line := s.dates.Load()
	if line == nil || line.second != now.Unix() {
		line = &dateLine{now.Unix(), []string{now.UTC().Format(http.TimeFormat)}}
		s.dates.Store(line)
	}
	return line.text
}

// setDate sets the header Date. Without it net/http would use the system's clock.
func (s *Server) setDate(w http.ResponseWriter) { transport.SetDate(w, s.date) }
