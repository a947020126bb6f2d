package main

import (
	"context"
	"fmt"
)

// takeSingle puts records of 1 KiB one by one.
func takeSingle(ctx context.Context, cfg Config, t turn, p *running, m *measured) error {
	if err := createStream(ctx, p); err != nil {
		return err
	}
	payload, err := newPayload(kib)
	if err != nil {
		return err
	}
	for _, c := range t.clients(p) {
		defer c.close()
		for _, r := range []struct {
			row     row
			workers int
		}{{putSingle8, inFlight}, {putSingle64, manyInFlight}} {
			made := make([]int, r.workers)
			rate, _, err := t.rate(ctx, cfg, r.workers,
				func(ctx context.Context, worker int) error {
					made[worker]++
					return c.putSingle(ctx, payload, worker+r.workers*made[worker])
				})
			if err != nil {
				return fmt.Errorf("%s, %s: %w", r.row, c.via, err)
			}
			m.add(t.server, r.row, c.via, rate)
		}
	}
	return nil
}
