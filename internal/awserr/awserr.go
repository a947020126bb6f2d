// Package awserr says what the error of a call to AWS means for the caller: whether the call may be
// made again, whether its sender is at fault, and whether a write may have taken effect.
//
// One package has the codes, since copies differ sooner or later: one list of throttling codes
// without KMSThrottlingException is enough to end a worker that should wait.
package awserr

import (
	"errors"
	"net/http"
	"strings"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// Class is what an error of a call means.
type Class uint8

const (
	// Unknown is no answer at all, or an answer that says nothing of the call's execution: a
	// fault of the server, or a code of no other class. A write may have taken effect.
	Unknown Class = iota
	// Throttled is a call over a limit. It was not executed, and may be made again later.
	Throttled
	// Passing is a call that was refused before execution, for a reason that passes: a stream that
	// is being changed, a signature whose date is off.
	Passing
	// Caller is a call that was refused before execution because of its sender: its keys, its
	// rights, its use of KMS. It would be refused again until that changes.
	Caller
	// Expired is a security token that is over its time. It is Passing for a client that gets
	// another token, and Caller for one that does not.
	Expired
	// Missing is a call that was refused because its stream, shard, table or key is not there.
	Missing
	// Record is a call that was refused before execution because of what it carries.
	Record
	// Gone is an iterator or a page token that is over its time. A new one helps.
	Gone
)

var classNames = [...]string{
	"unknown", "throttled", "passing", "caller", "expired", "missing", "record", "gone",
}

// String returns the class's name, as "throttled".
func (c Class) String() string { return classNames[c] }

// NotExecuted reports whether an error of the class says for certain that the call changed nothing:
// a put stored no record.
func (c Class) NotExecuted() bool { return c != Unknown }

// OfCode returns the class of an answer's code; known is false for one that is in no list.
func (s Service) OfCode(code, message string) (class Class, known bool) {
	if code == invalidSignature && isClockFault(message) {
		return Passing, true
	}
	if class, known = s[code]; !known {
		class, known = common[code]
	}
	return class, known
}

// isClockFault tells a signature that came too late, since the process was stopped between signing
// and sending or the clocks differ, from a wrong one.
func isClockFault(message string) bool {
	return strings.HasPrefix(message, "Signature expired") ||
		strings.HasPrefix(message, "Signature not yet current")
}

// Of returns the class of a call's error. Where the code says nothing, the HTTP status may.
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
// that passes, a fault of the server, and an error that is no answer of the API at all. An answer
// whose code is in no list is transient unless its status says that the client is at fault.
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

// Code returns the code of an answer; "" for an error that is none.
func Code(err error) string {
	var answer smithy.APIError
	if !errors.As(err, &answer) {
		return ""
	}
	return answer.ErrorCode()
}

// Message returns the message of an answer; "" for an error that is none.
func Message(err error) string {
	var answer smithy.APIError
	if !errors.As(err, &answer) {
		return ""
	}
	return answer.ErrorMessage()
}

// Status returns the HTTP status of an answer; 0 for an error that is none.
func Status(err error) int {
	var response *smithyhttp.ResponseError
	if errors.As(err, &response) {
		return response.HTTPStatusCode()
	}
	return 0
}
