package wal

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

const (
	firstRetry = time.Second // after a failed checkpoint; doubled each time
	lastRetry  = time.Minute
)

// Checkpoint writes a snapshot of every machine and recycles the files before the previous one. The
// log runs it by itself after every Config.FileSize bytes, and at Close. A failed checkpoint
// changes nothing; the log continues while the disk has room for its files.
func (l *Log) Checkpoint(ctx context.Context) error {
	l.mu.Lock()
	state := l.mu.state
	l.mu.Unlock()
	if state != stateRunning {
		return l.Err()
	}
	return l.snap(ctx)
}

// snap makes a checkpoint. Close uses it too.
func (l *Log) snap(ctx context.Context) error {
	select {
	case l.snapping <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-l.snapping }()

	at, finish, err := l.freeze()
	if err != nil || finish == nil {
		return err
	}
	done := slowDown(l, at)
	err = finishSnap(ctx, l, at, finish)
	done(err)
	return err
}

// finishSnap makes a frozen checkpoint durable, and frees what it replaces.
func finishSnap(
	ctx context.Context, l *Log, at LSN, finish map[Kind]func(context.Context) ([]byte, error),
) error {
	if err := l.Wait(ctx, at); err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	// With a SyncInterval, frames count as durable before they are synced. A snapshot must never
	// be ahead of the log.
	if err := l.syncWritten(); err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	parts, err := collect(ctx, l, finish)
	if err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	err = l.folder.writeSnapshot(at, parts)
	if err != nil && mayPass(err) && l.dropSpares() {
		err = l.folder.writeSnapshot(at, parts)
	}
	if err != nil {
		if errors.Is(err, errNotDurable) {
			l.poison(err)
			return l.Err()
		}
		return fmt.Errorf("checkpoint: %w", err)
	}
	keep := l.recycle(at)
	if err := l.folder.removeSnapshots(at, keep); err != nil {
		l.logger.Warn("could not remove old snapshots; the next checkpoint does", "error", err)
	}
	for _, keeper := range fileKeepers(l.machines) {
		if err := keeper.Keep(keep != at); err != nil {
			l.logger.Warn("could not remove old files; the next checkpoint does", "error", err)
		}
	}
	return nil
}

// collect gets the parts of a snapshot. The spares give way to the files of machines.
func collect(
	ctx context.Context, l *Log, finish map[Kind]func(context.Context) ([]byte, error),
) ([]part, error) {
	parts := make([]part, 0, len(finish))
	for _, kind := range slices.Sorted(maps.Keys(finish)) {
		data, err := finish[kind](ctx)
		_, files := l.machines[kind].(FileKeeper)
		if err != nil && files && mayPass(err) && l.dropSpares() {
			data, err = finish[kind](ctx)
		}
		if err != nil {
			return nil, fmt.Errorf("machine %d: %w", kind, err)
		}
		parts = append(parts, part{kind: kind, data: data})
	}
	return parts, nil
}

// freeze captures all machines at one instant. It returns no functions if the log has not grown.
func (l *Log) freeze() (LSN, map[Kind]func(context.Context) ([]byte, error), error) {
	l.gate.Lock()
	defer l.gate.Unlock()
	l.mu.Lock()
	at, last, poison := l.mu.queue.end, l.mu.snapshot, l.mu.poison
	l.mu.Unlock()
	if poison != nil || at == last {
		return 0, nil, poison
	}
	finish := make(map[Kind]func(context.Context) ([]byte, error), len(l.machines))
	for kind, machine := range l.machines {
		finish[kind] = machine.Freeze()
	}
	return at, finish, nil
}

// recycle releases the files that the two newest snapshots do not need, once the one at at is
// durable. It returns the place of the one before: a start uses that one if the newest is damaged.
// If the disk has no room for the next file, the older snapshot and its files give way.
func (l *Log) recycle(at LSN) (keep LSN) {
	l.mu.Lock()
	keep = l.mu.snapshot
	if l.cfg.KeepOne || l.mu.fileErr != nil {
		keep = at
	}
	l.mu.snapshot, l.mu.asked = at, max(at, l.mu.asked)
	n := 0
	var surplus []uint64
	for ; n+1 < len(l.mu.segments) && l.mu.segments[n+1].start <= keep; n++ {
		s := l.mu.segments[n]
		if len(l.mu.spares) < keepSpares && s.size == l.cfg.FileSize {
			l.mu.spares = append(l.mu.spares, s.generation)
		} else {
			surplus = append(surplus, s.generation)
		}
	}
	l.mu.segments = append(l.mu.segments[:0], l.mu.segments[n:]...)
	l.mu.Unlock()
	for _, generation := range surplus {
		if err := l.folder.remove(generation); err != nil {
			l.logger.Warn("could not remove a log file; the next start does", "error", err)
		}
	}
	nudge(l.recycled)
	return keep
}

// checkpoints is the checkpointer's goroutine. It makes a checkpoint when enough was logged, and
// again after a failure.
func (l *Log) checkpoints(ctx context.Context) {
	retry := firstRetry
	timer := time.NewTimer(lastRetry)
	timer.Stop()
	defer timer.Stop()
	for {
		select {
		case <-l.checkpoint:
		case <-timer.C:
		case <-l.freed: // more than a second later, since such changes come in numbers
			retry = firstRetry
			timer.Reset(retry)
			continue
		case <-l.closing:
			return
		}
		err := checkpointUnlessHeld(l, func() error { return l.snap(ctx) })
		switch {
		case errors.Is(err, errHeld):
			timer.Reset(firstRetry)
		case err == nil:
			retry = firstRetry
			timer.Stop()
		case l.Err() == nil || errors.Is(l.Err(), ErrStalled):
			l.logger.Warn("could not checkpoint; trying again", "error", err, "in", retry)
			timer.Reset(retry)
			retry = min(2*retry, lastRetry)
		default: // poisoned or closing: the callers of Sequence and Wait get the error
		}
	}
}
