package consumer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/retry"
)

// ErrorPolicy is the treatment of a record on which the handler fails. The zero value tries for
// ever, and the shard waits for it.
type ErrorPolicy struct {
	// Attempts is the number of attempts after which Then is carried out. Default 0: no limit.
	Attempts int
	// Backoff is the pause after the first failure. It doubles with each further one, up to 5 s, or
	// to Backoff if that is longer. Default 50 ms.
	Backoff time.Duration
	// Then is carried out when a record is out of attempts; default ThenStop.
	Then Then
	// DeadLetter keeps a record elsewhere before ThenSkip passes over it. The position passes the
	// records only when DeadLetter has returned nil: until then it is called again, with growing
	// pauses. Several goroutines may call it at once.
	DeadLetter func(ctx context.Context, f Failure) error
}

// Then is the treatment of a record that is out of attempts.
type Then int

const (
	// ThenStop stops the shard alone, before the record. The worker keeps its lease, reports
	// EventShardStopped, and goes on after Worker.Resume. A new owner of the lease tries anew, too.
	// With Config.Once the worker ends with the error.
	ThenStop Then = iota
	// ThenSkip passes over the record, and reports EventSkipped.
	ThenSkip
)

// Failure is a record, or a batch, that ThenSkip passes over.
type Failure struct {
	Stream  string         // the stream's name
	ShardID runnel.ShardID // the shard of the records
	// Records is the record that failed; for a Processor that did not name one, the whole batch.
	Records  []runnel.Record
	Err      error // of the last attempt
	Attempts int   // at these records
}

// Unavailable marks a handler's error that no record is to blame for, such as a database that is
// away. The attempt does not count, and the same records come again after a pause. A nil err is
// nil.
func Unavailable(err error) error {
	if err == nil {
		return nil
	}
	return &unavailableError{err}
}

type unavailableError struct{ err error }

func (e *unavailableError) Error() string { return e.err.Error() }

func (e *unavailableError) Unwrap() error { return e.err }

// FailedAt names the record of a batch on which the handler failed. The records before it then
// count as processed, and the next attempt begins with it. A nil err is nil.
func FailedAt(r *runnel.Record, err error) error {
	if err == nil {
		return nil
	}
	return &failedAtError{at: r.Position, err: err}
}

type failedAtError struct {
	at  runnel.Position
	err error
}

func (e *failedAtError) Error() string { return fmt.Sprintf("at the record %s: %v", e.at, e.err) }

func (e *failedAtError) Unwrap() error { return e.err }

// blamed returns the index of the record that a failure names; false if it names none of these.
func blamed(records []runnel.Record, failure error) (int, bool) {
	var named *failedAtError
	if !errors.As(failure, &named) {
		return 0, false
	}
	i := slices.IndexFunc(records, func(r runnel.Record) bool { return r.Position == named.at })
	return max(0, i), i >= 0
}

func blamesNone(failure error) bool {
	var away *unavailableError
	return errors.As(failure, &away)
}

// haltError stops a shard by its ErrorPolicy.
type haltError struct {
	at  runnel.Position
	err error
}

func (e *haltError) Error() string {
	return fmt.Sprintf("the shard stops before the record %s, which is out of attempts: %v", e.at,
		e.err)
}

func (e *haltError) Unwrap() error { return e.err }

func (p ErrorPolicy) faults(fault func(bool, string, ...any)) {
	fault(p.Attempts < 0, "OnError.Attempts is %d: want 0 (for ever) or more", p.Attempts)
	fault(p.Backoff < 0, "OnError.Backoff is %s: want 0 (the default) or more", p.Backoff)
	fault(p.Then != ThenStop && p.Then != ThenSkip, "OnError.Then is %d: want ThenStop or ThenSkip",
		int(p.Then))
	fault(p.Then == ThenSkip && p.Attempts == 0,
		"OnError.Then is ThenSkip without OnError.Attempts: the attempts have no end, so that no "+
			"record is skipped")
	fault(p.DeadLetter != nil && p.Attempts == 0,
		"OnError.DeadLetter is set without OnError.Attempts: the attempts have no end, so that it "+
			"gets no record")
	fault(p.DeadLetter != nil && p.Then == ThenStop,
		"OnError.DeadLetter is set with ThenStop, which skips no record: want ThenSkip")
}

func (p ErrorPolicy) isZero() bool {
	return p.Attempts == 0 && p.Backoff == 0 && p.Then == ThenStop && p.DeadLetter == nil
}

// after returns the pause after so many failures in a row.
func (p ErrorPolicy) after(failures int) time.Duration {
	first := cmp.Or(p.Backoff, 50*time.Millisecond)
	return retry.Backoff{Min: first, Max: max(first, longestBackoff)}.After(failures)
}

// isOut reports whether a record is out of attempts after so many.
func (p ErrorPolicy) isOut(attempts int) bool { return p.Attempts > 0 && attempts >= p.Attempts }
