package pages

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/awserr"
)

// recover prepares the next attempt after a failed one. It returns the error if there is to be
// none, or gone if the stream no longer has the shard.
func (c *Cursor) recover(ctx context.Context, err error) (gone bool, _ error) {
	if ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	if full, ok := errors.AsType[*roomless](err); ok {
		return false, full.error
	}
	if err = c.suspect(ctx, err); c.cfg.Of != nil && c.cfg.Of.Lasting(err) {
		return false, err
	}
	c.failures++
	class := awserr.Kinesis.Of(err)
	wait, report := c.cfg.Backoff.After(c.failures), false
	switch {
	case class == awserr.Gone:
		// An iterator expires if the reader takes long to come back, and a new one replaces it. The
		// reader pauses before it asks a server that expires iterators again and again.
		if c.iterator = ""; c.failures == 1 {
			return false, nil
		}
	case class == awserr.Throttled:
		if full, ok := errors.AsType[*throttle](err); ok {
			err, wait = full.error, 0 // the budget waits
		}
		if c.cfg.OnThrottle != nil {
			c.cfg.OnThrottle()
		}
	case c.gone(ctx, err):
		return true, nil
	case !c.cfg.Persist && !c.missing(err) && !awserr.Kinesis.Transient(err):
		return false, err
	default:
		c.iterator = "" // the iterator may be the cause
		report = c.cfg.OnFailure != nil
	}
	if c.cfg.Attempts > 0 && c.failures >= c.cfg.Attempts {
		return false, err
	}
	if report {
		c.cfg.OnFailure(err, c.failures)
	}
	c.due = time.Now().Add(wait)
	return false, nil
}

// missing reports whether the API knows no such stream or shard, though the stream, which Same has
// seen since, is there. The stream's list will show the shard, or that it is gone.
func (c *Cursor) missing(err error) bool {
	return c.cfg.Of != nil && awserr.Kinesis.Of(err) == awserr.Missing
}

// suspect looks at the stream if an error may mean that another stream took its place. It returns
// the error of that look if it is lasting, or else err itself.
func (c *Cursor) suspect(ctx context.Context, err error) error {
	if c.cfg.Of == nil || !c.missing(err) && !awserr.InvalidArgument(err) {
		return err
	}
	if changed := c.cfg.Of.Same(ctx); changed != nil && c.cfg.Of.Lasting(changed) {
		return changed
	}
	return err
}

// gone reports whether the stream exists and lists other shards, but no longer this one.
func (c *Cursor) gone(ctx context.Context, err error) bool {
	if !c.missing(err) {
		return false
	}
	shards, err := c.cfg.Of.Shards(ctx)
	return err == nil && len(shards) > 0 &&
		!slices.ContainsFunc(shards, func(s runnel.Shard) bool { return s.ID == c.cfg.Shard })
}
