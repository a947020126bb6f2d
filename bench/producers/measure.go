package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/runnel-stream/runnel/bench/internal/process"
)

// done is a client's last line of output.
type done struct {
	Records int     `json:"records"` // acknowledged
	Failed  int     `json:"failed"`
	Seconds float64 `json:"seconds"` // from the first put to the last acknowledgement
}

// figures has the measurements of one client.
type figures struct {
	done
	calls  int
	cpu    time.Duration // of the client's processes
	memory float64       // the sum of the processes' peaks, in MB
}

// measure runs one client against a new server.
func measure(
	ctx context.Context, cfg Config, in input, limits string, w way,
) (got figures, err error) {
	s, err := serve(ctx, cfg, limits)
	if err != nil {
		return got, err
	}
	defer func() { err = errors.Join(err, s.End()) }()
	t := task{server: s, file: in.file, passes: cfg.Passes, most: cfg.Most, limits: limits}
	p, err := process.Begin(w.command(ctx, t))
	if err != nil {
		return got, err
	}
	defer p.End()
	if err := p.Wait("ready", nil); err != nil {
		return got, err
	}
	before, err := calls(ctx, s)
	if err != nil {
		return got, err
	}
	cpu := p.CPU()
	if err := p.Order("go"); err != nil {
		return got, err
	}
	if err := p.Wait("done", &got.done); err != nil {
		return got, err
	}
	got.cpu, got.memory = p.CPU()-cpu, p.Memory()
	after, err := calls(ctx, s)
	got.calls = after - before
	switch {
	case err != nil:
		return got, err
	case got.Failed > 0 || got.Records == 0:
		return got, fmt.Errorf("%d records put, %d failed", got.Records, got.Failed)
	}
	return got, nil
}
