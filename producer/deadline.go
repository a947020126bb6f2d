package producer

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/smithy-go/middleware"
)

// errTooLate is the error of a call that was not sent, since one of its units may not be sent
// any more.
var errTooLate = errors.New("the unit was first sent too long ago to be sent again")

// notAfter has a call not sent once the time has come. That is looked at twice: after signing, so
// that nothing is sent in vain; and when the body is first read, when there is a connection to take
// it. Waiting for one may take any time, with an old signature and, on a machine that is suspended
// meanwhile, with no time-out; and a stream that checks no signatures knows of a call's age only
// from its first byte on. If the process is stopped after that, the connection is one that says
// nothing, which a stream closes sooner than after H.
func notAfter(until time.Time, now func() time.Time) func(*kinesis.Options) {
	return func(o *kinesis.Options) {
		if until.IsZero() {
			return
		}
		d := deadline{until, now}
		o.HTTPClient = inTime{o.HTTPClient, d}
		o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
			return stack.Finalize.Insert(d, "Signing", middleware.After)
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
	if d.over() {
		return out, metadata, errTooLate
	}
	return next.HandleFinalize(ctx, in)
}

func (d deadline) over() bool { return d.now().After(d.until) }

// inTime is an HTTP client that sends no body after the deadline.
type inTime struct {
	client aws.HTTPClient
	deadline
}

func (t inTime) Do(r *http.Request) (*http.Response, error) {
	if r.Body == nil || r.Body == http.NoBody {
		return t.client.Do(r)
	}
	wrapped := *r // a sender must not change its caller's request
	wrapped.Body = &bodyInTime{body: r.Body, deadline: t.deadline}
	wrapped.GetBody = nil // it would be sent again without the check
	return t.client.Do(&wrapped)
}

// bodyInTime is a body that fails if it is first read after the deadline: a request without its
// whole body is not executed.
type bodyInTime struct {
	body io.ReadCloser
	deadline
	begun bool
}

func (b *bodyInTime) Read(p []byte) (int, error) {
	if !b.begun && b.over() {
		return 0, errTooLate
	}
	b.begun = true
	return b.body.Read(p)
}

func (b *bodyInTime) Close() error { return b.body.Close() }
