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
// has refused the caller: its keys, its rights, the stream's name. It matches ErrRefusedCaller,
// ErrHalted and the errors of Cause's chain.
//
// Without a journal every such record is reported with ErrRefused, since nothing would send it
// again. With one a later run does: so the producer stops, and the journal keeps every unit that
// has no acknowledgement open, for Config.Resume.
type HaltedError struct {
	Stream string // as in the Config
	// Open is how many records were taken and have no acknowledgement; Unknown is how many of
	// these may be in the stream. Both are 0 in the error of Put, which does not wait for the calls
	// in flight.
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

// halt notes that the stream has refused the caller. The shell makes no more calls, and abandons
// the remaining records when the calls in flight have landed.
func (c *core) halt(cause error) {
	if c.halted == nil {
		c.halted = cause
	}
}

// idle reports whether the core waits for the outcome of no call, look-up or listing.
func (c *core) idle() bool {
	return c.calls == 0 && !c.lookups.running && !c.chart.running
}

// halt stops the producer if its core has halted. It is called after every landing, and the last
// one abandons the remaining records.
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

// abandon ends every record that is left, with p.mu held and nothing in flight. It returns how
// many these were, and how many of them may be in the stream.
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

// refused returns the *HaltedError of a producer that has halted, or nil.
func (p *Producer) refused() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.refusal == nil {
		return nil // of the interface, not of the pointer
	}
	return p.mu.refusal
}

// isFinal reports whether the same call would fail again: the stream has refused the caller.
func isFinal(err error) bool {
	var lasting lastingError
	return errors.As(err, &lasting) || fateOfClass[awserr.Kinesis.Of(err)] == refused
}

// finalForCaller turns the answer that the caller's token has expired into a refusal of the
// caller, if the client will not get another token.
func (p *Producer) finalForCaller(ctx context.Context, o outcome) outcome {
	if o.each == nil && o.all.fate == failed && isFinal(p.lasting(ctx, p.cfg.Kinesis, o.all.err)) {
		o.all.fate = refused
	}
	return o
}

// lastingError is an answer that passes for most callers, and would come again for this one.
type lastingError struct{ error }

func (e lastingError) Unwrap() error { return e.error }

// lasting marks the answer that the token has expired as final if the API that gave it will not get
// another token: one from the environment or a file has no time at which the SDK renews it.
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
