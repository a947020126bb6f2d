package main

import (
	"context"
	"fmt"
	"time"

	"github.com/runnel-stream/runnel/bench/internal/process"
)

// running is a running server.
type running struct {
	*process.Program
	endpoint string
}

// start runs a server on an empty folder and waits for its first answer. The caller ends it.
func start(ctx context.Context, cfg Config, s *server) (*running, error) {
	var w *wire
	defer func() {
		if w != nil {
			w.close()
		}
	}()
	program, err := process.Start{
		Parent: cfg.Dir, Command: s.command,
		Call: func(ctx context.Context, address string) error {
			if w == nil {
				w = newWire("http://" + address)
			}
			if err := w.call(ctx, s.target, []byte("{}"), nil); err != nil {
				return fmt.Errorf("%s: %w", s.target, err)
			}
			return nil
		},
		Poll: time.Millisecond,
	}.Run(ctx)
	if err != nil {
		return nil, err
	}
	return &running{program, "http://" + program.Address}, nil
}
