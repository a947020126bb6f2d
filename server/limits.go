package server

import "github.com/runnel-stream/runnel/server/internal/limit"

// SetLimits replaces the limits on throughput and calls; nil: there are none. What has been
// used up to now is forgotten. Before Start and after Close it does nothing.
func (s *Server) SetLimits(plan *limit.Plan) {
	if engine, state := s.enter(); state == ready {
		defer s.leave()
		engine.kinesis.SetLimits(plan)
	}
}
