package pages

import (
	"context"
	"errors"
	"time"

	"github.com/runnel-stream/runnel/internal/awserr"
)

// broken returns why a subscription ended; nil at its regular end, and if its connection broke
// after an event.
func (l *live) broken() error {
	err := l.events.Err()
	if l.came && awserr.Code(err) == "" {
		return nil
	}
	return err
}

// failed prepares the next attempt after a failed one, as Cursor.recover does for polling.
func (s *Subscription) failed(ctx context.Context, err error) (Page, bool, error) {
	c, taken := s.cursor, s.live != nil && isInUse(err)
	s.drop()
	if ctx.Err() != nil {
		return Page{}, false, context.Cause(ctx)
	}
	now := time.Now()
	if errors.Is(err, errNotHeld) { // ctx will end, or the lease is renewed
		s.postpone(now.Add(c.cfg.Backoff.After(1)))
		return Page{}, false, nil
	}
	if err = c.suspect(ctx, err); c.cfg.Of.Lasting(err) {
		return Page{}, false, err
	}
	if c.gone(ctx, err) {
		c.end = &Page{Ended: true, Gone: true, Complete: c.guard.complete}
		return *c.end, true, nil
	}
	s.failures++
	s.taken = s.taken || taken
	if s.without.IsZero() {
		s.without = now
	}
	refused := isInUse(err) && !taken
	if refused && s.refused.IsZero() {
		s.refused = now
	}
	switch {
	case s.polling:
	case s.cfg.OrPoll && (hopeless(err) || now.Sub(s.without) >= patience):
		s.beginPolling(err)
		return Page{}, false, nil
	case refused && now.Sub(s.refused) < quietRefusals, errors.Is(err, ErrPending):
	case awserr.Kinesis.Of(err) == awserr.Throttled:
	case c.cfg.OnFailure != nil:
		c.cfg.OnFailure(err, s.failures)
	}
	s.postpone(now.Add(s.wait(err)))
	return Page{}, false, nil
}

// postpone makes the next attempt at a subscription due at a time, or later.
func (s *Subscription) postpone(to time.Time) {
	if to.After(s.due) {
		s.due = to
	}
	s.again = time.Now().Add(fanoutAgain)
}

// wait returns the wait after an error.
func (s *Subscription) wait(err error) time.Duration {
	switch {
	case isInUse(err), errors.Is(err, ErrPending):
		return refusedWait
	case awserr.Kinesis.Of(err) == awserr.Throttled:
		return max(refusedWait, s.cursor.cfg.Backoff.After(s.failures))
	default:
		return s.cursor.cfg.Backoff.After(s.failures)
	}
}

func isInUse(err error) bool { return awserr.Code(err) == awserr.CodeInUse }

// hopeless reports whether another attempt at a subscription would soon fail in the same way.
func hopeless(err error) bool {
	return errors.Is(err, ErrNoConsumer) ||
		awserr.Kinesis.Of(err) != awserr.Missing && !awserr.Kinesis.Transient(err)
}

// polls reports whether the source polls now: while there is no subscription to be had, and near
// the end of the retention period. There each page needs an iterator of its own, and a new
// subscription would have to wait for five seconds.
func (s *Subscription) polls() bool {
	if s.polling {
		return time.Now().Before(s.again)
	}
	g := &s.cursor.guard
	return s.cursor.cfg.Gaps && !g.complete.IsZero() && g.overtaken(s.now())
}

// poll makes one attempt at the next page by polling.
func (s *Subscription) poll(ctx context.Context) (Page, bool, error) {
	if err := s.cursor.Await(ctx); err != nil {
		return Page{}, false, err
	}
	return s.cursor.Try(ctx)
}

func (s *Subscription) beginPolling(reason error) {
	s.polling, s.again = true, time.Now().Add(fanoutAgain)
	s.cursor.iterator, s.cursor.due = "", time.Time{}
	if s.cfg.OnPolling != nil {
		s.cfg.OnPolling(reason)
	}
}
