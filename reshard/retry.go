package reshard

import (
	"context"
	"time"

	"github.com/runnel-stream/runnel/internal/awserr"
	"github.com/runnel-stream/runnel/internal/retry"
)

const (
	attempts    = 10 // of one call in a row; with the waits between them about a minute
	callTimeout = 20 * time.Second
)

var backoff = retry.Backoff{Min: 200 * time.Millisecond, Max: 10 * time.Second}

// persist repeats a call until it succeeds or another attempt would not help. It returns the last
// error.
func persist(ctx context.Context, call func(context.Context) error) error {
	for failed := 1; ; failed++ {
		err := once(ctx, call)
		if err == nil || !awserr.Kinesis.Transient(err) || failed == attempts {
			return err
		}
		if err := backoff.Wait(ctx, failed); err != nil {
			return err
		}
	}
}

// once makes a call with a deadline of its own. The cause is the error when ctx has ended.
func once(ctx context.Context, call func(context.Context) error) error {
	calling, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	err := call(calling)
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
