package fault

import (
	"context"
	"time"
)

// Refusal is a way to refuse a call instead of executing it.
type Refusal uint8

// The refusals. None means that the call is executed.
const (
	None          Refusal = iota
	InternalError         // HTTP 500
	Unavailable           // HTTP 503
	Throttle              // the API's throttling error
	Denied                // HTTP 400 with Decision.Code
	LoseRequest           // no answer: the connection is cut
)

// Decision lists the faults of one call. The zero value has none.
type Decision struct {
	// Delay is the wait before all other faults.
	Delay time.Duration
	// Refuse, unless None, is the answer instead of executing the call.
	Refuse Refusal
	// Code is the error's code if Refuse is Denied.
	Code string
	// Records lists the faults of a PutRecords call's entries; see FailRecords.
	Records []RecordFault
	// ExpireIterator makes GetRecords treat its iterator as expired.
	ExpireIterator bool
	// LoseAnswer cuts the connection after the call has been executed.
	LoseAnswer bool
	// CommitLate, unless 0, cuts the connection and executes the call that much later. With
	// Hang the connection stays open and silent until then, or until the client gives up.
	CommitLate time.Duration
	Hang       bool
	// CutStream, unless 0, ends an event stream abruptly, that long after it began.
	CutStream time.Duration
}

// RecordFault makes records of a PutRecords call fail. If Number is not 0, it is that record,
// counted from 1. Otherwise, if Den is not 0, each record fails with the chance Num/Den.
// Otherwise Draw picks one record.
type RecordFault struct {
	Throttled bool // ProvisionedThroughputExceededException instead of InternalFailure
	Number    int
	Num, Den  int
	Draw      uint64
}

// FailRecords returns the indices, ascending from 0, of the records that fail with
// InternalFailure in a PutRecords call of n records.
func (d Decision) FailRecords(n int) []int { return d.records(n, false) }

// ThrottleRecords returns the indices of those that fail with
// ProvisionedThroughputExceededException. The two sets are disjoint.
func (d Decision) ThrottleRecords(n int) []int { return d.records(n, true) }

// records applies the faults in order: the first that matches a record decides.
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
