package server

import (
	"strconv"

	"github.com/runnel-stream/runnel/server/internal/limit"
)

// SetLimits replaces the limits on throughput and calls, in the language of Config.Limits; "" and
// "off" end them. All usage counted so far is forgotten. Before Start and after Close it does
// nothing.
func (s *Server) SetLimits(text string) error {
	plan, err := limit.Parse(text)
	if err != nil {
		return fieldError("Limits", strconv.Quote(text), err)
	}
	if engine, state := s.enter(); state == ready {
		defer s.leave()
		engine.kinesis.SetLimits(plan)
	}
	return nil
}
