package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// mostTime bounds the wait for a row's calls after the time in which they begin.
const mostTime = time.Minute

// keepCalling makes calls from several workers, each worker one call at a time. No call begins
// after d, but every worker makes at least one. It returns the number of calls and the time until
// the last answer. The first error ends it.
func keepCalling(
	ctx context.Context, workers int, d time.Duration,
	call func(ctx context.Context, worker int) error,
) (calls int, took time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, d+mostTime)
	defer cancel()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var made atomic.Int64
	var group sync.WaitGroup
	begin := time.Now()
	for worker := range workers {
		group.Go(func() {
			for first := true; first || time.Since(begin) < d; first = false {
				if err := call(ctx, worker); err != nil {
					stop(err)
					return
				}
				made.Add(1)
			}
		})
	}
	group.Wait()
	return int(made.Load()), time.Since(begin), context.Cause(ctx)
}

// drained is the result of a drain.
type drained struct {
	records int
	took    time.Duration
	ended   bool // every shard was read to its end
}

// drain reads the shards from their oldest record, inFlight shards at a time. No call begins after
// d, but every worker reads at least once.
func drain(ctx context.Context, c client, d time.Duration) (drained, error) {
	ctx, cancel := context.WithTimeout(ctx, d+mostTime)
	defer cancel()
	var next, records, ended atomic.Int64
	var group sync.WaitGroup
	errs := make([]error, inFlight)
	begin := time.Now()
	late := func() bool { return time.Since(begin) > d }
	for worker := range inFlight {
		group.Go(func() {
			for first := true; first || !late(); first = false {
				shard := int(next.Add(1)) - 1
				if shard >= shards {
					return
				}
				end, err := readShard(ctx, c, shard, &records, late)
				if err != nil {
					errs[worker] = fmt.Errorf("shard %d: %w", shard, err)
					return
				}
				if end {
					ended.Add(1)
				}
			}
		})
	}
	group.Wait()
	return drained{
		records: int(records.Load()), took: time.Since(begin), ended: ended.Load() == shards,
	}, errors.Join(errs...)
}

// readShard reads a shard to its end, or until it is late.
func readShard(
	ctx context.Context, c client, shard int, records *atomic.Int64, late func() bool,
) (ended bool, err error) {
	iterator, err := c.iterator(ctx, shard)
	if err != nil {
		return false, err
	}
	for first := true; first || !late(); first = false {
		n, next, err := c.read(ctx, iterator)
		if err != nil {
			return false, err
		}
		records.Add(int64(n))
		if n == 0 || next == "" {
			return true, nil
		}
		iterator = next
	}
	return false, nil
}
