package consumer

import (
	"context"
	"errors"
	"fmt"

	"github.com/runnel-stream/runnel/lease"
)

// ErrRecreated is returned if the stream was deleted and created again while the worker read it.
// errors.Is(err, lease.ErrOtherStream) holds as well.
var ErrRecreated = errors.New("the stream was deleted and created again while it was read; " +
	"nothing of the new one was taken for the old one")

// sameStream returns nil if the stream is still the one with which the worker began, by a look that
// began after the call. The error is ErrRecreated or ErrStreamGone if it is not.
func (r *run) sameStream(ctx context.Context) error { return r.identity.Same(ctx) }

func (r *run) identify(ctx context.Context) error {
	stream, _, err := r.describe(ctx)
	if err == nil && stream.String() != r.stream.String() {
		err = r.recreated(stream)
	}
	return err
}

// describe calls the function describe, and stores the retention period.
func (r *run) describe(ctx context.Context) (lease.Stream, bounds, error) {
	stream, now, err := describe(ctx, r.cfg)
	if err == nil {
		r.kept.Store(int64(now.retention))
	}
	return stream, now, err
}

func (r *run) recreated(now lease.Stream) error {
	return fmt.Errorf("%w: %w", ErrRecreated, &lease.StreamError{
		Table: r.table.Name(), Want: now.String(), Have: r.stream.String(),
	})
}

// isFinal reports whether another attempt is useless for every shard.
func isFinal(err error) bool {
	return errors.Is(err, lease.ErrOtherStream) || errors.Is(err, ErrStreamGone) ||
		errors.Is(err, lease.ErrTableNotFound) || errors.Is(err, ErrReplaced) ||
		errors.Is(err, lease.ErrManagedByKCL3) || errors.Is(err, lease.ErrMultiStream) ||
		errors.Is(err, lease.ErrOtherOutput)
}

// giveUp ends the worker with an error that isFinal, or a *haltError. The first one counts.
func (r *run) giveUp(err error) {
	select {
	case r.final <- err:
	default:
	}
}

// isOver returns the error with which a final error ends the worker; nil if the worker may go on.
func (r *run) isOver(ctx context.Context, err error) error {
	var halt *haltError // with Config.Once
	if errors.As(err, &halt) {
		return err
	}
	if !isFinal(err) {
		return nil
	}
	if !errors.Is(err, lease.ErrTableNotFound) {
		return err
	}
	// The table may have been missing for a moment only, or be another program's.
	there, failure := r.table.Exists(ctx)
	if there || failure != nil {
		r.reportFailure("", errors.Join(err, failure))
		return nil
	}
	return fmt.Errorf("the lease table %s was deleted while the worker used it: start the worker "+
		"again, and it makes a new one, with which a sink goes on where it ends, and a handler "+
		"begins at Config.From: %w", r.table.Name(), lease.ErrTableNotFound)
}
