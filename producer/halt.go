package producer

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/runnel-stream/runnel/internal/awserr"
)

// HaltedError is returned by Put, Flush and Close of a producer with a Journal after the stream
// has refused the caller: its credentials, its rights or the stream's name. It matches
// ErrRefusedCaller, ErrHalted and the errors in Cause's chain.
//
// Without a Journal the producer reports each such record with ErrRefused, because it cannot send
// the record later. With a Journal a later run can. So the producer stops, and every unit without
// an acknowledgement stays open in the journal, for Config.Resume.
type HaltedError struct {
	Stream string // as in the Config
	// Open is the number of records that were taken and have no acknowledgement. Unknown is the
	// number of these that may be in the stream. Both are 0 until the calls in flight have landed,
	// which Put does not wait for.
	Open, Unknown int
	Cause         error // the stream's answer
}

// Error returns one sentence with the stream, the cause and the number of open records.
func (e *HaltedError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "the producer of stream %s has halted: %v: %v", e.Stream, ErrRefusedCaller,
		e.Cause)
	if e.Open > 0 {
		fmt.Fprintf(&b, "; %d records are not acknowledged, and stay open in the journal", e.Open)
	}
	if e.Unknown > 0 {
		fmt.Fprintf(&b, " (%d of them may be in the stream)", e.Unknown)
	}
	return b.String()
}

// Unwrap returns ErrHalted and the cause.
func (e *HaltedError) Unwrap() []error { return []error{ErrHalted, e.Cause} }

// halt records that the stream has refused the caller. The shell then makes no more calls, and
// abandons the remaining records when the calls in flight have landed.
func (c *core) halt(cause error) {
	if c.halted == nil {
		c.halted = cause
	}
}

// idle reports whether no call, look-up or listing is under way.
func (c *core) idle() bool {
	return c.calls == 0 && !c.lookups.running && !c.chart.running
}

// halt stops the producer if its core has halted. It is called after every landing, so that the
// last one abandons the remaining records.
func (p *Producer) halt() {
	p.mu.Lock()
	core, first := p.mu.core, p.mu.refusal == nil
	if core.halted == nil {
		p.mu.Unlock()
		return
	}
	if first {
		p.mu.refusal = &HaltedError{Stream: p.cfg.Stream, Cause: core.halted}
		p.mu.closed, p.mu.halted = true, true
	}
	refusal := p.mu.refusal
	if core.idle() {
		p.abandon()
	}
	p.mu.Unlock()
	if first {
		p.close(refusal)
		p.stopReading(refusal)
	}
	signal(p.deliverNow)
}

// abandon ends all remaining records. The caller holds p.mu, and nothing is in flight. It returns
// the number of these records, and of those that may be in the stream.
func (p *Producer) abandon() (records, unknown int) {
	core := p.mu.core
	records, unknown = core.ledger.unsettled()
	reason := ErrClosed
	if p.mu.refusal != nil {
		reason = ErrHalted
		if records > 0 {
			p.mu.refusal = &HaltedError{
				Stream: p.cfg.Stream, Open: records, Unknown: unknown, Cause: core.halted,
			}
		}
	}
	core.abandon(reason)
	return records, unknown
}

// refused returns the *HaltedError if the producer has halted, or nil.
func (p *Producer) refused() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.refusal == nil {
		return nil // a nil error, not a nil *HaltedError in an error
	}
	return p.mu.refusal
}

// isFinal reports whether the stream has refused the caller, so that the same call would fail
// again.
func isFinal(err error) bool {
	var lasting lastingError
	return errors.As(err, &lasting) || fateOfClass[awserr.Kinesis.Of(err)] == refused
}

// finalForCaller turns the answer "token expired" into a refusal of the caller, if the client
// cannot renew its token.
func (p *Producer) finalForCaller(ctx context.Context, o outcome) outcome {
	if o.each == nil && o.all.fate == failed && isFinal(p.lasting(ctx, p.cfg.Kinesis, o.all.err)) {
		o.all.fate = refused
	}
	return o
}

// lastingError wraps an answer that is temporary for most callers but final for this one.
type lastingError struct{ error }

func (e lastingError) Unwrap() error { return e.error }

// lasting wraps the answer "token expired" in a lastingError if the client of the API cannot renew
// its token. The SDK renews only credentials with an expiry time, which a token from the
// environment or a file does not have.
func (p *Producer) lasting(ctx context.Context, api any, err error) error {
	if awserr.Kinesis.Of(err) != awserr.Expired {
		return err
	}
	client, ok := api.(interface{ Options() kinesis.Options })
	if !ok {
		return err
	}
	provider := client.Options().Credentials
	if provider == nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, p.cfg.CallTimeout, errCallTimeout)
	defer cancel()
	if keys, wrong := provider.Retrieve(ctx); wrong != nil || keys.CanExpire {
		return err
	}
	return lastingError{err}
}
