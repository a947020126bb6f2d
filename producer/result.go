package producer

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/runnel-stream/runnel"
)

// Result is the outcome of one record. Every record that was taken gets exactly one. The package
// comment explains each outcome.
type Result struct {
	// ShardID and Position are the place where the stream stored the record, from the
	// acknowledgement or a look-up; zero if the record was not delivered. Position.Sub is the index
	// of the record inside its Kinesis record.
	ShardID  runnel.ShardID
	Position runnel.Position
	// Attempts is the number of calls that carried the record, and Unknown the number of these
	// without an answer. Each unknown attempt may have left one more copy in the stream; attempts
	// that a look-up has shown to have left none are not counted in Unknown. For a resumed record
	// all attempts of earlier runs count as one, which is unknown.
	Attempts, Unknown int
	// Err is nil if the record was delivered, and otherwise an *UndeliveredError.
	Err error
}

// The errors that the Err of a Result may match, tested with errors.Is. ErrClosed and ErrHalted are
// returned by Put too.
var (
	// ErrRefused means that the stream has refused the record and would refuse it again. If the
	// caller is the cause, the error matches ErrRefusedCaller too.
	ErrRefused = errors.New("refused by the stream")
	// ErrRefusedCaller means a refusal that does not depend on the records: wrong or expired
	// credentials, missing rights, a problem with a KMS key, a stream that does not exist.
	ErrRefusedCaller = errors.New("the stream has refused the caller")
	// ErrHalted means that the stream has refused the caller of a producer with a Journal, which
	// keeps the record for a later run. It matches ErrRefusedCaller. See HaltedError.
	ErrHalted = fmt.Errorf("%w, and the record stays open in the journal", ErrRefusedCaller)
	// ErrGivenUp means that Config.GiveUpAfter has passed without an acknowledgement.
	ErrGivenUp = errors.New("given up")
	// ErrUnresolved means that an attempt had no answer, that aggregate.H has passed, and that
	// the record could not be looked up: the producer cannot read the stream, or the stream's
	// retention period is over. The error matches ErrMaybeStored too.
	ErrUnresolved = errors.New("it could not be found out whether it is in the stream")
	// ErrClosed means that the producer is closed. From Put: the record was not taken. As the
	// reason of an UndeliveredError: Close ran out of time before the record was acknowledged.
	ErrClosed = errors.New("the producer is closed")
	// ErrMaybeStored means that an attempt of the record had no answer, so that the record may be
	// in the stream although it was not acknowledged.
	ErrMaybeStored = errors.New("the record may be in the stream")
)

// errRefusedForCaller is the reason of a record that is refused because of the caller. It matches
// ErrRefused and ErrRefusedCaller; the cause next to it has the details.
var errRefusedForCaller error = callerRefusal{}

type callerRefusal struct{}

func (callerRefusal) Error() string   { return ErrRefused.Error() }
func (callerRefusal) Unwrap() []error { return []error{ErrRefused, ErrRefusedCaller} }

// UndeliveredError is the reason why a record was not delivered. It matches Reason, the errors in
// Cause's chain and, if Unknown is above 0, ErrMaybeStored.
type UndeliveredError struct {
	Stream       string // as in the Config
	PartitionKey string // the record's
	Reason       error  // matches ErrRefused, ErrGivenUp, ErrUnresolved, ErrHalted or ErrClosed
	Attempts     int    // calls that carried the record
	Unknown      int    // of these, without an answer
	Cause        error  // of the last attempt; nil if there was none
}

// Error returns one sentence with the stream, the key, the reason and the last cause.
func (e *UndeliveredError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "put to stream %s, key %q: %v (attempts: %d, without an answer: %d)",
		e.Stream, e.PartitionKey, e.Reason, e.Attempts, e.Unknown)
	if e.Unknown > 0 {
		fmt.Fprintf(&b, "; %v, and putting it again may double it", ErrMaybeStored)
	} else {
		b.WriteString("; it is not in the stream")
	}
	if e.Cause != nil {
		fmt.Fprintf(&b, "; last attempt: %v", e.Cause)
	}
	return b.String()
}

// Unwrap returns the reason, the cause and, where it applies, ErrMaybeStored.
func (e *UndeliveredError) Unwrap() []error {
	errs := []error{e.Reason}
	if e.Unknown > 0 {
		errs = append(errs, ErrMaybeStored)
	}
	if e.Cause != nil {
		errs = append(errs, e.Cause)
	}
	return errs
}

// RecordError is the stream's answer for one failed record of a call that stored others.
type RecordError struct {
	Code    string // ProvisionedThroughputExceededException or InternalFailure
	Message string // the text of the answer
}

func (e *RecordError) Error() string { return e.Code + ": " + e.Message }

// CallReport describes one call and its outcome, for metrics.
type CallReport struct {
	Units   int           // Kinesis records in the call
	Records int           // records in the units
	Bytes   int           // data and partition keys of the Kinesis records
	Took    time.Duration // from the start to the outcome
	// The Records by outcome; the six numbers add up to Records.
	//
	//   - Stored: in the stream, but possibly where readers drop them (Stats.Void).
	//   - Throttled: over a limit.
	//   - Failed: not stored, for another reason that passes.
	//   - Unknown: no answer.
	//   - NotSent: certainly never sent.
	//   - Refused: not stored, for a reason that does not pass.
	Stored, Throttled, Failed, Unknown, NotSent, Refused int
	// Err is the error of the call as a whole; nil if the answer has a result for each unit.
	Err error
}
