package consumer

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/runnel-stream/runnel/internal/awsclient"
	"github.com/runnel-stream/runnel/lease"
)

// backoff returns how long to wait after the attempt-th failure in a row, 1 being the first: from
// 50 ms doubling to longest. The second half of the wait is random.
func backoff(attempt int, longest time.Duration) time.Duration {
	d := longest
	if attempt < 16 {
		d = min(longest, 25*time.Millisecond<<attempt)
	}
	return d/2 + rand.N(d/2+1)
}

const longestBackoff = 5 * time.Second

// wait waits, or returns false once ctx or stopping (nil: none) is done.
func wait(ctx context.Context, d time.Duration, stopping <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	case <-stopping:
		return false
	}
}

// transient reports whether the same call may succeed a little later. It is false only for errors
// with which the API refuses the call for good. Every other error, such as an outage, passes.
func transient(err error) bool {
	for _, final := range []error{lease.ErrStream, lease.ErrNative, lease.ErrNotLeases} {
		if errors.Is(err, final) {
			return false
		}
	}
	if awsclient.Throttled(err) {
		return true
	}
	var response *smithyhttp.ResponseError
	if errors.As(err, &response) {
		if status := response.HTTPStatusCode(); status >= 400 && status < 500 {
			return status == http.StatusRequestTimeout || status == http.StatusTooManyRequests
		}
	}
	var answer smithy.APIError
	return !errors.As(err, &answer) || answer.ErrorFault() != smithy.FaultClient
}

// notFound reports whether Kinesis knows no such stream or shard.
func notFound(err error) bool {
	var missing *types.ResourceNotFoundException
	return errors.As(err, &missing)
}
