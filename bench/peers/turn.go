package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// turn is one group of one server in one round.
type turn struct {
	server *server
	group  group
	round  int
}

// order returns a round's turns: group by group, so that what is compared is near in time, and
// every second round backwards.
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

// take starts the server and puts it through the group.
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
	defer func() { err = errors.Join(err, p.end()) }()
	m.add(t.server, firstAnswer, noClient, float64(p.started.Microseconds())/1000)
	const settled = 500 * time.Millisecond // a runtime has started what it starts by then
	if err := pause(ctx, settled); err != nil {
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

// addMemory adds what the process holds now; nothing where that cannot be known.
func (t turn) addMemory(p *process, m *measured, r row) error {
	memory, err := p.resident()
	if errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	if err != nil {
		return err
	}
	m.add(t.server, r, noClient, memory)
	return nil
}

// warm is the part of a row's time for which the same calls are made before, unmeasured.
const warm = 4

// rate makes calls for a row's time, after some that do not count, and returns how many there
// were a second, and how many in all.
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
