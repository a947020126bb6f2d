package cloudwatch

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/runnel-stream/runnel/internal/wire"
)

// maxInput limits an uncompressed body, in bytes. AWS limits the body to 1 MB as it is sent,
// compressed or not.
const maxInput = 4 << 20

// Config configures a Service.
type Config struct {
	// MaxSeries is the number of series to keep; a new series then replaces the least recently
	// updated one. Default 10,000.
	MaxSeries int
	// Now is the server's clock, by which timestamps are checked. Required.
	Now func() time.Time
}

func (c Config) withDefaults() Config {
	if c.MaxSeries == 0 {
		c.MaxSeries = defaultSeries
	}
	return c
}

// Validate reports every fault of the configuration.
func (c Config) Validate() error {
	var faults []error
	if c.MaxSeries < 0 {
		faults = append(faults, fmt.Errorf("cloudwatch: MaxSeries is %d: want 1 or more, or 0 for "+
			"%d", c.MaxSeries, defaultSeries))
	}
	if c.Now == nil {
		faults = append(faults, errors.New("cloudwatch: Now is missing: want the server's clock"))
	}
	return errors.Join(faults...)
}

// Service implements CloudWatch's PutMetricData. It is a prometheus.Collector of the received
// metrics. Safe for concurrent use.
type Service struct {
	now   func() time.Time
	store *store
}

// New makes a service without series.
func New(cfg Config) (*Service, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	return &Service{now: cfg.Now, store: newStore(cfg.MaxSeries)}, nil
}

// Serve implements wire.Service. A refusal is an *wire.Error; the call then has no effect.
func (s *Service) Serve(_ context.Context, call *wire.Call) (wire.Answer, error) {
	if call.Operation != "PutMetricData" {
		return wire.Answer{}, &wire.Error{
			Code: "UnknownOperationException", Query: "InvalidAction",
			Message: fmt.Sprintf("runnel implements only CloudWatch's PutMetricData, not %q. "+
				"GET /metrics shows the stored metrics.", clipped(call.Operation)),
		}
	}
	if len(call.Body) > maxInput {
		return wire.Answer{}, &wire.Error{
			Code: "RequestEntityTooLarge", Status: http.StatusRequestEntityTooLarge,
			Message: fmt.Sprintf("The input has %d bytes, more than %d.", len(call.Body), maxInput),
		}
	}
	in, err := decode(call)
	if err != nil {
		return wire.Answer{}, err
	}
	now := s.now()
	if refused := in.validate(now); refused != nil {
		return wire.Answer{}, refused
	}
	s.store.put(call.World, in, now)
	return wire.Answer{}, nil
}

// clipped shortens a caller's text for a message.
func clipped(text string) string {
	const longest = 64
	if len(text) > longest {
		return text[:longest] + "…"
	}
	return text
}
