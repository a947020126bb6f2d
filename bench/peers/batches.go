package main

import (
	"context"
	"fmt"
)

// batches is a record size with its two rows.
type batches struct {
	recordBytes int
	put, get    row
}

// takeBatches puts records of one size with each client, and then reads all of them with each.
func takeBatches(
	ctx context.Context, cfg Config, t turn, p *running, m *measured, b batches,
) error {
	if err := createStream(ctx, p); err != nil {
		return err
	}
	payload, err := newPayload(b.recordBytes)
	if err != nil {
		return err
	}
	clients, held := t.clients(p), 0
	for _, c := range clients {
		defer c.close()
		rate, calls, err := t.rate(ctx, cfg, inFlight,
			func(ctx context.Context, _ int) error { return c.putBatch(ctx, payload) })
		if err != nil {
			return fmt.Errorf("%s, %s: %w", b.put, c.via, err)
		}
		held += calls * batchRecords
		m.add(t.server, b.put, c.via, rate*batchRecords)
	}
	if b.put == putKiB {
		if err := t.addMemory(p, m, fullMemory); err != nil {
			return err
		}
		m.add(t.server, fullPayload, noClient, float64(held*b.recordBytes)/1e6)
	}
	for _, c := range clients {
		read, err := drain(ctx, c, cfg.Row)
		if err != nil {
			return fmt.Errorf("%s, %s: %w", b.get, c.via, err)
		}
		if read.records > held || read.ended && read.records < held {
			return fmt.Errorf("%s, %s: %d records were read, %d were put", b.get, c.via,
				read.records, held)
		}
		m.add(t.server, b.get, c.via, float64(read.records)/read.took.Seconds())
	}
	return nil
}
