package consumer

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/runnel-stream/runnel/internal/awsclient"
	"github.com/runnel-stream/runnel/lease"
)

// ErrRecreated is returned when the stream was deleted and created again while the worker read
// it. errors.Is(err, lease.ErrStream) holds as well.
var ErrRecreated = errors.New("the stream was deleted and created again while it was read; " +
	"nothing of the new one was taken for the old one")

// identity makes sure that the stream is the one that the worker began with. The shards of a
// stream that was made again have the ids of the old ones, and an iterator is asked for by the
// stream's name: by itself GetShardIterator begins to read the new stream silently. But an iterator
// belongs to the stream that had the name when it was made. So if the name is still the old
// stream's after that, the iterator is, too.
//
// That costs one DescribeStreamSummary for each iterator that is made, and AWS allows 20 a second
// for an account. So the readers of a worker share one: whoever comes while one is under way waits
// for the next, and that one counts for all who wait.
type identity struct {
	turn    chan struct{} // held while looking
	started atomic.Int64  // looks that were begun
	passed  int64         // the last look that found the stream unchanged; guarded by turn
	looked  time.Time     // when that one began; guarded by turn
}

// looksApart is the least time between two looks of a worker.
const looksApart = 200 * time.Millisecond

func newIdentity() identity { return identity{turn: make(chan struct{}, 1)} }

// sameStream returns nil if the stream is still the same one, by a look that began after the call.
// The error is ErrRecreated or ErrStreamGone if it is not.
func (r *run) sameStream(ctx context.Context) error {
	wanted := r.identity.started.Load() + 1
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case r.identity.turn <- struct{}{}:
	}
	defer func() { <-r.identity.turn }()
	for attempt := 1; r.identity.passed < wanted; attempt++ {
		early := looksApart - time.Since(r.identity.looked)
		if early > 0 && !r.identity.looked.IsZero() && !wait(ctx, early, nil) {
			return context.Cause(ctx)
		}
		look := r.identity.started.Add(1)
		r.identity.looked = time.Now()
		stream, _, err := r.describe(ctx)
		switch {
		case err == nil && stream.String() == r.stream.String():
			r.identity.passed = look
		case err == nil:
			return r.recreated(stream)
		case !awsclient.Throttled(err):
			return err
		case !wait(ctx, backoff(attempt, longestBackoff), nil):
			return context.Cause(ctx)
		}
	}
	return nil
}

// describe is the function of that name, and takes note of the retention period.
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

// suspect looks at the stream if an error can come from another one having taken its place, and
// returns what it has found instead of the error.
func (r *run) suspect(ctx context.Context, err error) error {
	var invalid *types.InvalidArgumentException
	if !notFound(err) && !errors.As(err, &invalid) {
		return err
	}
	if changed := r.sameStream(ctx); isFinal(changed) {
		return changed
	}
	return err
}

// isFinal reports whether trying again is of no use for any shard.
func isFinal(err error) bool {
	return errors.Is(err, lease.ErrStream) || errors.Is(err, ErrStreamGone) ||
		errors.Is(err, lease.ErrTable)
}

// giveUp ends the worker with an error that isFinal. The first one counts.
func (r *run) giveUp(err error) {
	select {
	case r.final <- err:
	default:
	}
}

// isOver returns the error that a final one ends the worker with; nil if there is still hope.
func (r *run) isOver(ctx context.Context, err error) error {
	if !isFinal(err) {
		return nil
	}
	if !errors.Is(err, lease.ErrTable) {
		return err
	}
	// The table may have been missing for a moment only, or be another program's.
	if there, looking := r.table.Exists(ctx); there || looking != nil {
		r.reportFailure("", err)
		return nil
	}
	return fmt.Errorf("the lease table %s was deleted while the worker used it: start the worker "+
		"again, and it makes a new one, with which a sink goes on where it ends, and a handler "+
		"begins at Config.From: %w", r.table.Name(), lease.ErrTable)
}
