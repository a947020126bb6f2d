package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/runnel-stream/runnel/bench/internal/process"
)

// turn is the measurement of one group for one server in one round.
type turn struct {
	server *server
	group  group
	round  int
}

// order returns a round's turns, group by group, so that compared figures are near in time. Every
// second round is in the opposite order.
func order(all []*server, round int) []turn {
	var turns []turn
	for _, g := range append(kinesisGroups(), groupUpdates) {
		for _, s := range all {
			if slices.Contains(s.groups, g) && (round == 0 || !s.slow) {
				turns = append(turns, turn{s, g, round})
			}
		}
	}
	if round%2 == 1 {
		slices.Reverse(turns)
	}
	return turns
}

// take starts the server and measures the group.
func take(ctx context.Context, cfg Config, t turn, m *measured) (err error) {
	if err := t.server.installed(); err != nil {
		return err
	}
	if !cfg.NoFlush {
		flushDisk(ctx)
	}
	p, err := start(ctx, cfg, t.server)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.End()) }()
	m.add(t.server, firstAnswer, noClient, float64(p.Took.Microseconds())/1000)
	const settled = 500 * time.Millisecond // by then a runtime has completed its start
	if err := process.Pause(ctx, settled); err != nil {
		return err
	}
	if err := t.addMemory(p, m, idleMemory); err != nil {
		return err
	}
	switch t.group {
	case groupSingle:
		return takeSingle(ctx, cfg, t, p, m)
	case groupSmall:
		return takeBatches(ctx, cfg, t, p, m, batches{small, putSmall, getSmall})
	case groupKiB:
		return takeBatches(ctx, cfg, t, p, m, batches{kib, putKiB, getKiB})
	case groupUpdates:
		return takeUpdates(ctx, cfg, t, p, m)
	}
	return fmt.Errorf("no group %q", t.group)
}

// addMemory adds the process's resident memory, or nothing on systems without /proc.
func (t turn) addMemory(p *running, m *measured, r row) error {
	memory, err := p.Resident("VmRSS")
	if errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	if err != nil {
		return err
	}
	m.add(t.server, r, noClient, memory)
	return nil
}

// warm divides a row's time: the same calls run for this part of it before, unmeasured.
const warm = 4

// rate makes calls for a row's time, after some calls that do not count. It returns the calls per
// second and their number.
func (t turn) rate(
	ctx context.Context, cfg Config, workers int, call func(ctx context.Context, worker int) error,
) (rate float64, all int, err error) {
	if !t.server.slow {
		if all, _, err = keepCalling(ctx, workers, cfg.Row/warm, call); err != nil {
			return 0, all, err
		}
	}
	calls, took, err := keepCalling(ctx, workers, cfg.Row, call)
	return float64(calls) / took.Seconds(), all + calls, err
}
