package outbox

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/runnel-stream/runnel/internal/retry"
)

// committer makes the relay's changes of the database, one transaction at a time. Changes that
// arrive during a transaction go into the next one. So under load one transaction has the new units
// of many calls and the deletions of many answers.
//
// A change is never dropped: it is repeated until it has succeeded. The answer of a transaction may
// be lost, and the transaction may even commit later than its repetition. So before each repetition
// the committer raises the epoch of the lease: the first attempt has then ended, or never commits.
type committer struct {
	store store
	log   func(message string, args ...any)
	done  func(c *change) // called after each change that was committed
	// holdDead is called for a row that cannot become a dead letter: its key is held.
	holdDead func(key string, id int64)
	mu       sync.Mutex
	fence    fence
	next     change
	waits    []chan<- error // the callers that wait for next
	due      time.Time      // when next is to be committed at the latest; zero: no limit yet
	wake     chan struct{}  // has a value after next has changed; capacity 1
	failed   bool           // the last attempt failed

	unsure bool // the outcome of the last attempt is unknown

	stuck      []sentRows // units whose rows could not be deleted
	later      []sentRows // units that were not tried alone
	stuckUntil time.Time  // when that is tried again
}

const (
	// commitWithin is how long a deletion waits for others, or for a transaction with new units.
	commitWithin = 20 * time.Millisecond
	// commitUnits is the number of units whose deletion no longer waits.
	commitUnits = 500
	// commitTimeout is how long a transaction may take before the connection counts as dead.
	commitTimeout = 30 * time.Second
)

func newCommitter(s store, f fence) *committer {
	return &committer{store: s, fence: f, wake: make(chan struct{}, 1)}
}

// add adds to the next transaction.
func (c *committer) add(change func(*change)) {
	c.mu.Lock()
	change(&c.next)
	if c.due.IsZero() && !c.next.empty() {
		c.due = time.Now().Add(commitWithin)
	}
	c.mu.Unlock()
	c.signal()
}

// commit adds to the next transaction and waits for it.
func (c *committer) commit(ctx context.Context, change func(*change)) error {
	done := make(chan error, 1)
	c.mu.Lock()
	change(&c.next)
	c.waits = append(c.waits, done)
	c.mu.Unlock()
	c.signal()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (c *committer) signal() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// run makes transactions until ctx ends or the lease is lost.
func (c *committer) run(ctx context.Context) error {
	for {
		change, waits, wait := c.takeNext(time.Now())
		if change == nil {
			if err := c.sleep(ctx, wait); err != nil {
				return err
			}
			continue
		}
		answer := func(err error) {
			for _, done := range waits {
				done <- err
			}
			waits = nil
		}
		err := c.write(ctx, change, func() { answer(nil) })
		answer(err)
		if err != nil {
			return err
		}
	}
}

// sleep waits for a duration, or for a change.
func (c *committer) sleep(ctx context.Context, wait time.Duration) error {
	retry.WaitOr(ctx, wait, c.wake)
	return context.Cause(ctx)
}

// takeNext returns the change that is to be made now, or nil and the time until there is one.
func (c *committer) takeNext(
	now time.Time,
) (next *change, waits []chan<- error, wait time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.stuck)+len(c.later) > 0 && !now.Before(c.stuckUntil) {
		c.next.deleted = append(append(c.next.deleted, c.later...), c.stuck...)
		c.stuck, c.later, c.due = nil, nil, now
	}
	switch {
	case len(c.waits) > 0 || len(c.next.deleted) >= commitUnits:
	case c.next.empty() && len(c.stuck)+len(c.later) > 0:
		return nil, nil, c.stuckUntil.Sub(now)
	case c.next.empty():
		return nil, nil, time.Hour
	case now.Before(c.due):
		return nil, nil, c.due.Sub(now)
	}
	taken := c.next
	waits = c.waits
	c.next, c.waits, c.due = change{}, nil, time.Time{}
	taken.held = mergeHeld(taken.held)
	return &taken, waits, 0
}

// write makes a change, however often it must try. It may call opened when the new units are in the
// journal, and deletions are not made yet.
func (c *committer) write(ctx context.Context, next *change, opened func()) error {
	err := c.repeat(ctx, next)
	if refused(err) && next.divisible() {
		return c.divide(ctx, next, err, opened)
	}
	return err
}

// repeat makes a change, however often it must try, and calls done. It gives a change up if the
// lease is lost, and a divisible one if the database refuses it.
func (c *committer) repeat(ctx context.Context, next *change) error {
	for failures := 0; ; {
		err := c.try(ctx, next)
		switch {
		case err == nil:
			if c.failed {
				c.failed = false
				c.log("the database takes the relay's changes again", "failures", failures)
			}
			c.done(next)
			return nil
		case errors.Is(err, errLost), errors.Is(err, errMoved), errors.Is(err, errUndeletable),
			refused(err) && next.divisible():
			return err
		case ctx.Err() != nil:
			return context.Cause(ctx)
		}
		if failures++; !c.failed {
			c.failed = true
			c.log("the database does not take the relay's changes; trying again", "error", err)
		}
		if err := databaseBackoff.Wait(ctx, failures); err != nil {
			return err
		}
	}
}

// databaseBackoff is the wait between two attempts to reach the database.
var databaseBackoff = retry.Backoff{Min: 20 * time.Millisecond, Max: 2 * time.Second}

// try makes a change once. If the outcome of an earlier attempt is unknown, it raises the epoch.
func (c *committer) try(ctx context.Context, next *change) error {
	ctx, cancel := context.WithTimeout(ctx, commitTimeout)
	defer cancel()
	if c.unsure {
		fence, err := c.store.renew(ctx, c.fence)
		switch {
		case errors.Is(err, errLost), errors.Is(err, errMoved):
			return err
		case err != nil: // as a text, since it says nothing about the change
			return errors.New(err.Error())
		}
		c.mu.Lock()
		c.fence = fence
		c.mu.Unlock()
		c.unsure = false
	}
	err := c.store.commit(ctx, c.fence, next)
	c.unsure = err != nil && !refused(err)
	return err
}

// flush makes the next transaction now.
func (c *committer) flush(ctx context.Context) error {
	return c.commit(ctx, func(*change) {})
}

// mergeHeld returns held keys with one entry for each key.
func mergeHeld(held []HeldKey) []HeldKey {
	var merged []HeldKey
	at := map[string]int{}
	for _, h := range held {
		i, ok := at[h.Key]
		if !ok {
			at[h.Key] = len(merged)
			merged = append(merged, h)
			continue
		}
		merged[i].IDs = append(merged[i].IDs, h.IDs...)
	}
	return merged
}
