package producer

import (
	"context"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/smithy-go/middleware"
)

// errTooLate is the error of a call that was not sent, since one of its units may not be sent
// any more.
var errTooLate = errors.New("the unit was first sent too long ago to be sent again")

// notAfter has a call not sent once the time has come. That is looked at after signing, as the
// last thing before the request goes out: a process that is stopped between a check and the
// send sends a request whose signature is as old as its sleep, and no stream takes that in once
// it is older than it may live (2H).
func notAfter(until time.Time, now func() time.Time) func(*kinesis.Options) {
	return func(o *kinesis.Options) {
		if until.IsZero() {
			return
		}
		o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
			return stack.Finalize.Insert(deadline{until, now}, "Signing", middleware.After)
		})
	}
}

// deadline is a middleware of the SDK.
type deadline struct {
	until time.Time
	now   func() time.Time
}

func (deadline) ID() string { return "RunnelDeadline" }

func (d deadline) HandleFinalize(
	ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler,
) (out middleware.FinalizeOutput, metadata middleware.Metadata, err error) {
	if d.now().After(d.until) {
		return out, metadata, errTooLate
	}
	return next.HandleFinalize(ctx, in)
}
