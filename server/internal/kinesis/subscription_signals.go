package kinesis

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/runnel-stream/runnel/server/internal/shardlog"
)

// signals are the events for a subscription from other parts of the service.
type signals struct {
	takenOver bool // another subscription has its place
	closing   bool // the service ends
	changed   bool // the stream has changed; cleared when read
}

// bell receives the signals; a signal ends the current wait.
type bell struct {
	mu      sync.Mutex
	signals signals
	cancel  context.CancelFunc // of the wait that is under way; nil: none
}

// signal lets set store a signal, and ends the subscription's wait.
func (u *subscription) signal(set func(*signals)) {
	u.bell.mu.Lock()
	defer u.bell.mu.Unlock()
	set(&u.bell.signals)
	if u.bell.cancel != nil {
		u.bell.cancel()
	}
}

// signalled returns the signals since the last call.
func (u *subscription) signalled() signals {
	u.bell.mu.Lock()
	defer u.bell.mu.Unlock()
	told := u.bell.signals
	u.bell.signals.changed = false
	return told
}

// sleep makes the next signal call cancel; it returns false if a signal is there already.
func (u *subscription) sleep(cancel context.CancelFunc) bool {
	u.bell.mu.Lock()
	defer u.bell.mu.Unlock()
	if u.bell.signals != (signals{}) {
		return false
	}
	u.bell.cancel = cancel
	return true
}

func (u *subscription) awake() {
	u.bell.mu.Lock()
	defer u.bell.mu.Unlock()
	u.bell.cancel = nil
}

// wait waits for a record at the position, the shard's end, a signal, or the time, and then returns
// nil. Errors: ctx's, shardlog.ErrClosed.
func (u *subscription) wait(ctx context.Context, until time.Time) error {
	waiting, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	if !u.sleep(cancel) {
		return nil
	}
	defer u.awake()
	if u.paced() {
		return u.rest(ctx, waiting)
	}
	err := u.records.Wait(waiting, u.next)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, shardlog.ErrClosed):
		return err
	default:
		return nil // the wait's own end
	}
}
