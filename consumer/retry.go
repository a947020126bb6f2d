package consumer

import (
	"errors"
	"time"

	"github.com/runnel-stream/runnel/internal/awserr"
	"github.com/runnel-stream/runnel/internal/retry"
	"github.com/runnel-stream/runnel/lease"
)

// backoff returns the wait after so many failures in a row: from 50 ms on, doubling to longest.
func backoff(failures int, longest time.Duration) time.Duration {
	return retry.Backoff{Min: min(50*time.Millisecond, longest), Max: longest}.After(failures)
}

const longestBackoff = 5 * time.Second

// transient reports whether the same call may succeed a little later. It is false for the errors of
// a table that cannot be used, and for errors with which the API refuses the call for good. Every
// other error, such as an outage, passes.
func transient(err error) bool {
	for _, final := range []error{
		lease.ErrOtherStream, lease.ErrManagedByKCL3, lease.ErrMultiStream, lease.ErrNotLeaseTable,
		lease.ErrOtherOutput, ErrOtherConsumer,
	} {
		if errors.Is(err, final) {
			return false
		}
	}
	return awserr.Kinesis.Transient(err) // DynamoDB's codes that matter here mean the same
}

// throttled reports whether a call was over a limit.
func throttled(err error) bool { return awserr.Kinesis.Of(err) == awserr.Throttled }
