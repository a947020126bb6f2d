package runneltest

import (
	"fmt"

	"github.com/runnel-stream/runnel/server/internal/limit"
)

// SetLimits replaces the limits on throughput and calls, in the language of WithLimits; "off"
// ends them. What has been used up to now is forgotten. After Kill it holds from Restart on.
func (s *Server) SetLimits(spec string) error {
	plan, err := limit.Parse(spec)
	if err != nil {
		return fmt.Errorf("runneltest: %w", err)
	}
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	s.cfg.Limits = plan
	if s.running != nil {
		s.running.server.SetLimits(plan)
	}
	return nil
}
