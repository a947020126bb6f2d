package runneltest

import (
	"fmt"

	"github.com/runnel-stream/runnel/server"
)

// SetLimits replaces the limits on throughput and calls, in the language of WithLimits; "off"
// ends them. What has been used up to now is forgotten. After Kill it holds from Restart on.
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
