package awswire

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// status is the error's HTTP status.
func (e *Error) status() int {
	if e.Status == 0 {
		return http.StatusBadRequest
	}
	return e.Status
}

// envelope is the error's body: {"__type":…,"message":…} and the further members in order of
// their names. An empty message is left out. SerializationException spells its message with a
// capital, as AWS does.
func (e *Error) envelope() ([]byte, error) {
	body := []byte(`{"__type":`)
	body, err := appendJSON(body, e.Code)
	if err != nil {
		return nil, err
	}
	if e.Message != "" {
		member := `,"message":`
		if code := e.Code[strings.IndexByte(e.Code, '#')+1:]; code == "SerializationException" {
			member = `,"Message":`
		}
		if body, err = appendJSON(append(body, member...), e.Message); err != nil {
			return nil, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(e.Extra)) {
		if body, err = appendJSON(append(body, ','), name); err != nil {
			return nil, err
		}
		if body, err = appendJSON(append(body, ':'), e.Extra[name]); err != nil {
			return nil, err
		}
	}
	return append(body, '}'), nil
}

// appendJSON appends a value without escaping <, > and &, which AWS leaves alone too.
func appendJSON(body []byte, value any) ([]byte, error) {
	buffer := bytes.NewBuffer(body)
	encoder := json.NewEncoder(buffer)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buffer.Bytes(), []byte("\n")), nil
}

// coral qualifies an error that AWS' service framework returns before the service itself is
// asked: DynamoDB names it with its namespace, Kinesis without.
func coral(service, code string) string {
	if service == DynamoDB {
		return "com.amazon.coral.service#" + code
	}
	return code
}

// Serialization is the error for a body that cannot be read.
func Serialization(service, message string) *Error {
	return &Error{Code: coral(service, "SerializationException"), Message: message}
}

// UnknownOperation is the error for an operation that the service does not have.
func UnknownOperation(service string) *Error {
	return &Error{Code: coral(service, "UnknownOperationException")}
}

// InternalFailure is the error for everything that is not the caller's fault; nothing is told
// about it on the wire, and whether the call was executed is unknown.
func InternalFailure(service string) *Error {
	if service == DynamoDB {
		return &Error{
			Code:    "com.amazonaws.dynamodb.v20120810#InternalServerError",
			Message: "Internal server error", Status: http.StatusInternalServerError,
		}
	}
	return &Error{Code: "InternalFailure", Status: http.StatusInternalServerError}
}

// Unavailable is the error for a service that cannot answer now and did not execute the call.
func Unavailable(message string) *Error {
	return &Error{
		Code: "ServiceUnavailable", Message: message, Status: http.StatusServiceUnavailable,
	}
}
