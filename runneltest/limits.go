package runneltest

import (
	"fmt"

	"github.com/runnel-stream/runnel/server"
)

// SetLimits replaces the limits on throughput and calls. spec is in the language of WithLimits;
// "off" removes all limits. The server forgets the usage so far. After Kill the new limits apply
// from Restart on.
func (s *Server) SetLimits(spec string) error {
	if err := (server.Config{Limits: spec}).Validate(); err != nil {
		return fmt.Errorf("runneltest: %w", err)
	}
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	s.cfg.Limits = spec
	if s.running == nil {
		return nil
	}
	return s.running.server.SetLimits(spec)
}
