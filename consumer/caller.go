package consumer

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/retry"
)

// errStopping ends the attempts of a failing handler when the worker is being stopped.
var errStopping = errors.New("the worker is being stopped")

// caller calls a handler for one shard, whatever its form. It is safe for concurrent use.
type caller struct {
	of     *holding
	policy ErrorPolicy
	quit   <-chan struct{} // closed when no further call is begun; nil: with of.stopping
}

// call calls user code once. failure is the code's own error, or its panic; err ends the work on
// the shard, and then the code's result does not count.
func (c caller) call(ctx context.Context, do func(context.Context) error) (failure, err error) {
	return c.callBy(ctx, guarded, do)
}

// guard calls user code, and turns what ends it without an error into one.
type guard func(context.Context, func(context.Context) error) error

func (c caller) callBy(
	ctx context.Context, by guard, do func(context.Context) error,
) (failure, err error) {
	if err := c.of.control.gate(ctx, c.of.stopping, c.quit); err != nil {
		return nil, err
	}
	if err := c.of.keeper.ensure(ctx); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return counts(ctx, c.timed(ctx, by, do))
}

func (c caller) timed(ctx context.Context, by guard, do func(context.Context) error) error {
	defer c.of.calls.end(c.of.calls.begin())
	return by(ctx, do)
}

// counts returns the failure of a call if its result counts, and otherwise err.
func counts(ctx context.Context, result error) (failure, err error) {
	if ctx.Err() != nil { // the lease may be gone, or the shard was sought
		return nil, context.Cause(ctx)
	}
	return result, nil
}

// errExit is the failure of user code that ended its goroutine, as testing.T.FailNow does.
var errExit = errors.New("it ended its goroutine (runtime.Goexit)")

// guarded calls user code in a goroutine of its own, which the code may end.
func guarded(ctx context.Context, do func(context.Context) error) error {
	result := make(chan error, 1)
	go func() {
		err := errExit
		defer func() { result <- err }()
		err = recovered(ctx, do)
	}()
	return <-result
}

// recovered turns a panic into an error: one bad record must not end the process, which may hold
// many shards.
func recovered(ctx context.Context, do func(context.Context) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return do(ctx)
}

// failed reports a failed attempt that is followed by another one.
func (c caller) failed(failure error, what string, args ...any) {
	c.tried(fmt.Errorf("the handler failed on %s: %w", fmt.Sprintf(what, args...), failure))
}

func (c caller) tried(failure error) {
	c.of.retried()
	c.of.run.reportFailure(c.of.first.Key, failure) // whatever it wraps, it ends no worker
}

// pause waits before the next attempt.
func (c caller) pause(ctx context.Context, failures int) error {
	if retry.WaitOr(ctx, c.policy.after(failures), c.of.stopping) {
		return nil
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return errStopping
}

// giveUp carries out the policy's Then for records that are out of attempts. It returns nil once
// they may be passed over.
func (c caller) giveUp(
	ctx context.Context, records []runnel.Record, failure error, attempts int,
) error {
	at := records[0].Position
	if c.policy.Then == ThenStop {
		return &haltError{at: at, err: failure}
	}
	f := Failure{
		Stream: c.of.run.stream.Name, ShardID: c.of.first.Key, Records: records,
		Err: failure, Attempts: attempts,
	}
	for n := 1; c.policy.DeadLetter != nil; n++ {
		failing, err := c.call(ctx, func(ctx context.Context) error {
			return c.policy.DeadLetter(ctx, f)
		})
		if err != nil {
			return err
		}
		if failing == nil {
			break
		}
		c.tried(fmt.Errorf("DeadLetter failed on %d records at %s: %w", len(records), at, failing))
		if err := c.pause(ctx, n); err != nil {
			return err
		}
	}
	c.of.run.cfg.Logger.Warn("records are skipped", "worker", c.of.run.cfg.WorkerID, "stream",
		c.of.run.cfg.Stream, "shard", string(c.of.first.Key), "at", at.String(), "records",
		len(records), "attempts", attempts, "error", failure)
	c.of.event(Event{Kind: EventSkipped, Position: at, Records: len(records), Err: failure})
	return nil
}

// calls measures the handler's calls of one shard. It is safe for concurrent use.
type calls struct {
	all   *busy // of the worker; nil if they do not count there
	mu    sync.Mutex
	next  int
	since map[int]time.Time // when each running call began
	spent time.Duration     // in calls that have returned
}

// begin notes the beginning of a call, and returns a number for its end.
func (c *calls) begin() (id int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.since == nil {
		c.since = map[int]time.Time{}
	}
	c.next++
	c.since[c.next] = time.Now()
	c.all.begin()
	return c.next
}

func (c *calls) end(id int) {
	c.all.end()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.spent += time.Since(c.since[id])
	delete(c.since, id)
}

// state returns when the oldest running call began, zero if none runs, and the time spent in calls,
// those that run included.
func (c *calls) state() (oldest time.Time, spent time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	spent = c.spent
	for _, since := range c.since {
		spent += time.Since(since)
		if oldest.IsZero() || since.Before(oldest) {
			oldest = since
		}
	}
	return oldest, spent
}
