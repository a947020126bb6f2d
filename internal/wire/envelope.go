package wire

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/fxamacker/cbor/v2"
)

// status is the error's HTTP status.
func (e *Error) status() int {
	if e.Status == 0 {
		return http.StatusBadRequest
	}
	return e.Status
}

// messageMember is the name of the message's member: SerializationException spells it with a
// capital, as AWS does.
func (e *Error) messageMember() string {
	if e.Code[strings.IndexByte(e.Code, '#')+1:] == "SerializationException" {
		return "Message"
	}
	return "message"
}

// envelope is the error's body, {"__type":…,"message":…} and the further members in order of
// their names. An empty message is left out.
func (e *Error) envelope(format Format) ([]byte, error) {
	if format == CBOR {
		return e.cborEnvelope()
	}
	body := []byte(`{"__type":`)
	body, err := appendJSON(body, e.Code)
	if err != nil {
		return nil, err
	}
	if e.Message != "" {
		member := `,"` + e.messageMember() + `":`
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

// cborEnvelope returns the same as a CBOR map, of indefinite length as AWS writes it (kinesalite,
// index.js).
func (e *Error) cborEnvelope() ([]byte, error) {
	const beginMap, end = 0xbf, 0xff
	body := []byte{beginMap}
	add := func(name string, value any) error {
		for _, item := range [...]any{name, value} {
			data, err := cbor.Marshal(item)
			if err != nil {
				return err
			}
			body = append(body, data...)
		}
		return nil
	}
	if err := add("__type", e.Code); err != nil {
		return nil, err
	}
	if e.Message != "" {
		if err := add(e.messageMember(), e.Message); err != nil {
			return nil, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(e.Extra)) {
		if err := add(name, e.Extra[name]); err != nil {
			return nil, err
		}
	}
	return append(body, end), nil
}

// appendJSON appends a value without escaping <, > and &, as AWS does.
func appendJSON(body []byte, value any) ([]byte, error) {
	buffer := bytes.NewBuffer(body)
	encoder := json.NewEncoder(buffer)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buffer.Bytes(), []byte("\n")), nil
}

// coral adds the namespace to an error that AWS' service framework returns before it calls the
// service: DynamoDB's answers have it, Kinesis's do not.
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

// InternalFailure is the error for everything that is not the caller's fault. The answer has no
// details, and it is unknown whether the call was executed.
func InternalFailure(service string) *Error {
	if service == DynamoDB {
		return &Error{
			Code:    "com.amazonaws.dynamodb.v20120810#InternalServerError",
			Message: "Internal server error", Status: http.StatusInternalServerError,
		}
	}
	if service == CloudWatch { // the service model's InternalServiceFault
		return &Error{
			Code: "com.amazonaws.cloudwatch#InternalServiceFault", Query: "InternalServiceError",
			Status: http.StatusInternalServerError,
		}
	}
	return &Error{Code: "InternalFailure", Status: http.StatusInternalServerError}
}

// requestTimeout is a call whose body did not come in time. SDKs repeat it.
func requestTimeout(service, message string) *Error {
	return &Error{
		Code: coral(service, "RequestTimeoutException"), Message: message,
		Status: http.StatusRequestTimeout,
	}
}

// throttled is a call that was refused before it was read.
func throttled(service, message string) *Error {
	return &Error{Code: coral(service, "ThrottlingException"), Message: message}
}

// Unavailable is the error for a service that cannot answer now and did not execute the call.
func Unavailable(message string) *Error {
	return &Error{
		Code: "ServiceUnavailable", Message: message, Status: http.StatusServiceUnavailable,
	}
}
