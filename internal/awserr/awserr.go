// Package awserr classifies the errors of calls to AWS: whether the call may be made again, whether
// its sender is at fault, and whether a write may have taken effect.
//
// Only this package lists the codes, since copies begin to differ: a list of throttles without
// KMSThrottlingException ends a worker that should wait.
package awserr

import (
	"errors"
	"net/http"
	"strings"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// Class is the meaning of an error for the caller.
type Class uint8

const (
	// Unknown means that the outcome is unknown: there was no answer, or a fault of the server, or
	// a code of no other class. A write may have taken effect.
	Unknown Class = iota
	// Throttled means that the call was over a limit. It was not executed, and may be made again
	// later.
	Throttled
	// Passing means that the call was not executed, for a reason that passes: the stream is being
	// changed, or the date of the signature is off.
	Passing
	// Caller means that the call was not executed because of the caller's keys, rights or use of
	// KMS. It fails again until these change.
	Caller
	// Expired means that the security token is past its time. Treat it as Passing if the client
	// gets new tokens, and as Caller if it does not.
	Expired
	// Missing means that the stream, shard, table or key of the call does not exist.
	Missing
	// Record means that the call was not executed because its input is invalid, or because the
	// condition of its write did not hold.
	Record
	// Gone means that an iterator or a page token is past its time. A new one helps.
	Gone
)

var classNames = [...]string{
	"unknown", "throttled", "passing", "caller", "expired", "missing", "record", "gone",
}

// String returns the class's name, as "throttled".
func (c Class) String() string { return classNames[c] }

// NotExecuted reports whether a call with an error of this class certainly changed nothing: a put
// stored no record.
func (c Class) NotExecuted() bool { return c != Unknown }

// OfCode returns the class of a code and its message; known is false for a code of no list.
func (s Service) OfCode(code, message string) (class Class, known bool) {
	if code == codeInvalidSignature && isClockFault(message) {
		return Passing, true
	}
	if class, known = s[code]; !known {
		class, known = common[code]
	}
	return class, known
}

// isClockFault reports whether a signature was refused for its date and not for its key: the clocks
// differ, or the process was stopped between signing and sending.
func isClockFault(message string) bool {
	return strings.HasPrefix(message, "Signature expired") ||
		strings.HasPrefix(message, "Signature not yet current")
}

// Of returns the class of a call's error, by its code, or else by its HTTP status.
func (s Service) Of(err error) Class {
	var answer smithy.APIError
	if errors.As(err, &answer) {
		if class, known := s.OfCode(answer.ErrorCode(), answer.ErrorMessage()); known {
			return class
		}
	}
	switch Status(err) {
	case http.StatusTooManyRequests:
		return Throttled
	case http.StatusRequestEntityTooLarge:
		return Record
	}
	return Unknown
}

// Transient reports whether the same call may succeed a little later: after a throttle, a refusal
// that passes, a fault of the server, and an error without an answer. An answer with a code of no
// list is transient unless its status puts the fault on the client.
func (s Service) Transient(err error) bool {
	switch s.Of(err) {
	case Throttled, Passing:
		return true
	case Caller, Expired, Missing, Record, Gone:
		return false
	case Unknown:
	}
	if status := Status(err); status >= 400 && status < 500 {
		return status == http.StatusRequestTimeout
	}
	var answer smithy.APIError
	return !errors.As(err, &answer) || answer.ErrorFault() != smithy.FaultClient
}

// InvalidArgument reports whether the API refused an argument, as a sequence number of another
// shard. The class Record has more codes, as ValidationException for a name with a space.
func InvalidArgument(err error) bool { return Code(err) == CodeArgument }

// Misread reports whether the API could not read a call's body, or does not know its operation. It
// says so of a body whose type is unknown to it.
func Misread(err error) bool {
	code := Code(err)
	return code == codeSerialization || code == CodeUnknownOperation
}

// Code returns the code of an answer; "" for an error without an answer.
func Code(err error) string {
	var answer smithy.APIError
	if !errors.As(err, &answer) {
		return ""
	}
	return answer.ErrorCode()
}

// IsKeyFault reports whether a call was refused for its access key or the secret of it.
func IsKeyFault(err error) bool {
	code := Code(err)
	return code == codeUnknownClient ||
		code == codeInvalidSignature && !isClockFault(Message(err))
}

// Message returns the message of an answer; "" for an error without an answer.
func Message(err error) string {
	var answer smithy.APIError
	if !errors.As(err, &answer) {
		return ""
	}
	return answer.ErrorMessage()
}

// Status returns the HTTP status of an answer; 0 for an error without an answer.
func Status(err error) int {
	var response *smithyhttp.ResponseError
	if errors.As(err, &response) {
		return response.HTTPStatusCode()
	}
	return 0
}
