package fault

import (
	"context"
	"time"
)

// Refusal is a way not to execute a call.
type Refusal uint8

// The refusals; None executes it.
const (
	None          Refusal = iota
	InternalError         // HTTP 500
	Unavailable           // HTTP 503
	Throttle              // the API's throttling error
	Denied                // HTTP 400 with Decision.Code
	LoseRequest           // no answer: the connection is cut
)

// Decision is what is to go wrong with one call. The zero value is nothing.
type Decision struct {
	// Delay is the wait before anything else.
	Delay time.Duration
	// Refuse, unless None, is the answer in the place of executing the call.
	Refuse Refusal
	// Code is the error's code if Refuse is Denied.
	Code string
	// Records tells which entries of a PutRecords call fail; see FailRecords.
	Records []RecordFault
	// ExpireIterator makes GetRecords take its iterator for an expired one.
	ExpireIterator bool
	// LoseAnswer cuts the connection after the call has been executed.
	LoseAnswer bool
	// CommitLate, unless 0, cuts the connection and executes the call that much later. With
	// Hang the connection stays open and silent until then, or until the client gives up.
	CommitLate time.Duration
	Hang       bool
	// CutStream, unless 0, breaks an event stream off, that long after it began.
	CutStream time.Duration
}

// RecordFault makes records of a PutRecords call fail: the one with that Number, counted from
// 1, if it is not 0; each one with the chance Num/Den if Den is not 0; otherwise one that Draw
// picks.
type RecordFault struct {
	Throttled bool // ProvisionedThroughputExceededException instead of InternalFailure
	Number    int
	Num, Den  int
	Draw      uint64
}

// FailRecords returns the indices, ascending from 0, of the records of a PutRecords call of n
// records that are to fail with InternalFailure.
func (d Decision) FailRecords(n int) []int { return d.records(n, false) }

// ThrottleRecords returns those that are to fail with ProvisionedThroughputExceededException.
// No record is in both.
func (d Decision) ThrottleRecords(n int) []int { return d.records(n, true) }

// records goes through the faults in order: the first that meets a record decides it.
func (d Decision) records(n int, throttled bool) []int {
	if len(d.Records) == 0 {
		return nil
	}
	var indices []int
	for i := range n {
		for _, fault := range d.Records {
			if !fault.meets(i, n) {
				continue
			}
			if fault.Throttled == throttled {
				indices = append(indices, i)
			}
			break
		}
	}
	return indices
}

func (f RecordFault) meets(i, n int) bool {
	switch {
	case f.Number != 0:
		return i == f.Number-1
	case f.Den != 0:
		return mix(f.Draw, uint64(i))%uint64(f.Den) < uint64(f.Num)
	default:
		return uint64(i) == f.Draw%uint64(n)
	}
}

type contextKey struct{}

// WithDecision returns a context that carries the decision to the service.
func WithDecision(ctx context.Context, d Decision) context.Context {
	return context.WithValue(ctx, contextKey{}, &d)
}

// From returns the context's decision, or the zero one.
func From(ctx context.Context) Decision {
	if d, ok := ctx.Value(contextKey{}).(*Decision); ok {
		return *d
	}
	return Decision{}
}
