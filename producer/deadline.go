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

// errTooLate is the error of a call that was not sent because the horizon of one of its units has
// passed.
var errTooLate = errors.New("the unit was first sent too long ago to be sent again")

// notAfter makes a call fail if it is about to be sent after a deadline. It checks twice: after
// signing, and when the body is first read, which is when there is a connection. Waiting for a
// connection may take any time, in which the signature ages, and if the machine is suspended
// meanwhile no time-out applies. A stream that checks no signatures cannot see how old such a call
// is. If the process is stopped after the second check, the connection is silent, and a stream
// closes a silent connection in less than H.
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

// deadline is a middleware of the SDK that fails a call after a deadline.
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
	wrapped.GetBody = nil // a body from it would be sent without the check
	return t.client.Do(&wrapped)
}

// bodyInTime is a body that fails if its first read is after the deadline. A server does not
// execute a request without its whole body.
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
