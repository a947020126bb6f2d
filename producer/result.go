package producer

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/runnel-stream/runnel"
)

// Result is what became of one record. Every record that was taken has exactly one. The
// package comment says what each outcome means for order and doubles.
type Result struct {
	// ShardID and Position are where the stream stored the record, as acknowledged or found;
	// zero if it was not delivered. Position.Sub is the record's place in its Kinesis
	// record.
	ShardID  runnel.ShardID
	Position runnel.Position
	// Attempts is how many calls carried the record, and Unknown how many of these had no
	// answer. Each unknown attempt may have left one more copy in the stream; of attempts that
	// were found to have left none Unknown tells no more. An earlier run's attempts count as
	// one, which is unknown.
	Attempts, Unknown int
	// Err is nil if the record was delivered, else an *UndeliveredError.
	Err error
}

// The reasons for which a record is not delivered, and what else an error may match. Test
// them with errors.Is.
var (
	// ErrRefused: the stream said no to the record, and would say so again. If it said so
	// because of the caller, the error matches ErrRefusedCaller too.
	ErrRefused = errors.New("refused by the stream")
	// ErrRefusedCaller is matched by refusals that have nothing to do with the records: of
	// credentials that are wrong or have expired, of rights that are missing, of a key of KMS, of
	// a stream that is not there.
	ErrRefusedCaller = errors.New("the stream has refused the caller")
	// ErrHalted: the stream has refused the caller of a producer with a Journal, which keeps
	// the record for a later run. It matches ErrRefusedCaller. See HaltedError.
	ErrHalted = fmt.Errorf("%w, and the record stays open in the journal", ErrRefusedCaller)
	// ErrGivenUp: Config.GiveUpAfter went by without an acknowledgement.
	ErrGivenUp = errors.New("given up")
	// ErrUnresolved: an attempt had no answer, aggregate.H went by, and what became of it
	// could not be looked up: the producer may not read the stream, or the stream does not
	// keep records for so long. Its error matches ErrMaybeStored too.
	ErrUnresolved = errors.New("it could not be found out whether it is in the stream")
	// ErrClosed: the producer is closed. From Put, the record was not taken; as the reason of
	// an UndeliveredError, Close ran out of time before the record was acknowledged.
	ErrClosed = errors.New("the producer is closed")
	// ErrMaybeStored is matched by the error of a record of which an attempt had no answer: it
	// may be in the stream nevertheless.
	ErrMaybeStored = errors.New("the record may be in the stream")
)

// errRefusedForCaller is the reason of a record that is refused because of the caller; the cause
// beside it says why.
var errRefusedForCaller error = callerRefusal{}

type callerRefusal struct{}

func (callerRefusal) Error() string   { return ErrRefused.Error() }
func (callerRefusal) Unwrap() []error { return []error{ErrRefused, ErrRefusedCaller} }

// UndeliveredError says why a record was not delivered. It matches Reason, the errors of
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

// RecordError is the stream's answer for one record of a call of which others were stored.
type RecordError struct {
	Code    string // ProvisionedThroughputExceededException or InternalFailure
	Message string // the text of the answer
}

func (e *RecordError) Error() string { return e.Code + ": " + e.Message }

// CallReport is what became of one call, for metrics.
type CallReport struct {
	Units   int           // Kinesis records that it carried
	Records int           // the records in them
	Bytes   int           // of the units and their keys
	Took    time.Duration // from the start to the outcome
	// Stored are in the stream; some where readers drop them (Stats.Void).
	// Stored + Throttled + Failed + Unknown + NotSent + Refused = Records. Failed records were
	// answered with another error than throttling; those not sent surely never left.
	Stored, Throttled, Failed, Unknown, NotSent, Refused int
	// Err is the error of the call as a whole; nil if the units were answered one by one.
	Err error
}
