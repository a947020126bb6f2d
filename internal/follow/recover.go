package follow

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/runnel-stream/runnel/internal/awserr"
	"github.com/runnel-stream/runnel/internal/retry"
	"github.com/runnel-stream/runnel/internal/shardmap"
)

// ErrShard is returned for a shard that the stream does not have.
var ErrShard = errors.New("no such shard; see runnel streams describe")

// handlerError is an error of Config.Handle.
type handlerError struct{ err error }

func (e *handlerError) Error() string { return e.err.Error() }
func (e *handlerError) Unwrap() error { return e.err }

// recover waits after an error that passes, and returns any other error.
func (r *reader) recover(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var handler *handlerError
	if errors.As(err, &handler) {
		return handler.err
	}
	r.failures++
	err = r.suspect(ctx, err)
	var expired *types.ExpiredIteratorException
	var missing *types.ResourceNotFoundException
	switch {
	case errors.Is(err, ErrRecreated):
		return err
	case errors.As(err, &expired):
		// An iterator expires if the reader takes long to come back, and a new one replaces it. The
		// reader pauses before it asks a server that expires iterators again and again.
		if r.iterator = ""; r.failures == 1 {
			return nil
		}
	case awserr.Kinesis.Of(err) == awserr.Throttled, errors.Is(err, errNoChildren):
	case errors.As(err, &missing):
		gone, listErr := r.gone(ctx)
		if listErr != nil {
			return listErr
		}
		if gone {
			r.run.cfg.Notice(Notice{Kind: Gone, Shard: r.shard.ID, After: r.after})
			r.iterator = endOfShard
			return nil
		}
		r.iterator = ""
	case !awserr.Kinesis.Transient(err):
		return fmt.Errorf("shard %s: %w", r.shard.ID, err)
	default:
		if r.failures == 1 {
			r.run.cfg.Notice(Notice{Kind: Trouble, Shard: r.shard.ID, After: r.after, Err: err})
		}
		if !r.shardEnded() {
			r.iterator = "" // the iterator may be the cause
		}
	}
	return backoff.Wait(ctx, r.failures)
}

// suspect looks at the stream if the error may mean that another stream has taken its place.
func (r *reader) suspect(ctx context.Context, err error) error {
	var missing *types.ResourceNotFoundException
	var invalid *types.InvalidArgumentException
	if errors.As(err, &missing) || errors.As(err, &invalid) {
		if changed := r.run.identity.Same(ctx); errors.Is(changed, ErrRecreated) {
			return changed
		}
	}
	return err
}

// gone reports whether the stream exists but no longer lists this shard. The error says that there
// is no such stream.
func (r *reader) gone(ctx context.Context) (bool, error) {
	shards, err := shardmap.List(ctx, r.run.cfg.Client, r.run.cfg.Stream, nil)
	var missing *types.ResourceNotFoundException
	if errors.As(err, &missing) {
		return false, err
	}
	listed := slices.ContainsFunc(shards, func(s shardmap.Shard) bool { return s.ID == r.shard.ID })
	return err == nil && !listed, nil
}

var backoff = retry.Backoff{Min: 100 * time.Millisecond, Max: 5 * time.Second}
