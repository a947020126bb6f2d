package reshard

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/aws/smithy-go"
)

const (
	attempts    = 10 // of one call in a row; with the waits between them about a minute
	minWait     = 100 * time.Millisecond
	maxWait     = 10 * time.Second
	callTimeout = 20 * time.Second
)

// retry repeats a call until it succeeds, fails with an error that is not retryable, or has
// failed attempts times. It returns the last error.
func retry(ctx context.Context, call func(context.Context) error) error {
	for failed := 1; ; failed++ {
		err := once(ctx, call)
		if err == nil || !retryable(err) || failed == attempts {
			return err
		}
		if err := backoff(ctx, failed); err != nil {
			return err
		}
	}
}

// once makes a call with a deadline of its own. If ctx has ended, the error is its cause.
func once(ctx context.Context, call func(context.Context) error) error {
	calling, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	err := call(calling)
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// backoff waits after a failure. failed is the number of failures in a row, from 1 on.
func backoff(ctx context.Context, failed int) error {
	longest := min(maxWait, minWait<<min(failed, 20))
	return pause(ctx, longest/2+rand.N(longest/2))
}

// pause waits for d. It returns early, with the cause, if ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// retryable reports whether the same call may succeed a little later: after throttling, for a
// stream that is not ACTIVE, after a fault of the server, and after a failure without an answer
// of the API.
func retryable(err error) bool {
	if errors.Is(err, context.Canceled) {
		return false
	}
	var answer smithy.APIError
	if !errors.As(err, &answer) {
		return true
	}
	switch answer.ErrorCode() {
	case "LimitExceededException", "ResourceInUseException", "ThrottlingException",
		"ProvisionedThroughputExceededException", "KMSThrottlingException":
		return true
	}
	return answer.ErrorFault() != smithy.FaultClient
}
