package proxy

import (
	"errors"
	"net/http"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/producer"
)

// The codes of the errors that are answered here.
const (
	codeArgument    = "InvalidArgumentException"
	codeValidation  = "ValidationException"
	codeThrottled   = "ProvisionedThroughputExceededException"
	codeLimit       = "LimitExceededException"
	codeInternal    = "InternalFailure"
	codeUnknown     = "UnknownOperationException"
	codeUnavailable = "ServiceUnavailable"
)

// errFull: there was no room for a record within Config.PutWait.
var errFull = errors.New("the proxy holds as many records as it may: the stream takes them more " +
	"slowly than they come; the record was not taken, send it again later")

// throttles are the answers that stand for a limit of the stream: nothing was stored.
var throttles = map[string]bool{
	codeThrottled: true, codeLimit: true, "KMSThrottlingException": true,
}

// answerTo returns what a client is told of a record that was not taken or not delivered, or of
// a call that the endpoint behind has refused. What the endpoint has said is passed on as it is.
func answerTo(err error) *wire.Error {
	var undelivered *producer.UndeliveredError
	said := saidBehind(err)
	switch {
	case errors.Is(err, errFull):
		return &wire.Error{Code: codeThrottled, Message: err.Error()}
	case errors.Is(err, errBusy):
		return &wire.Error{Code: codeLimit, Message: err.Error()}
	case errors.Is(err, producer.ErrPartitionKey), errors.Is(err, producer.ErrHashKey),
		errors.Is(err, producer.ErrTooLarge):
		return &wire.Error{Code: codeValidation, Message: err.Error()}
	case errors.As(err, &undelivered):
		surelyNot := undelivered.Unknown == 0
		if said != nil && (errors.Is(err, producer.ErrRefused) ||
			surelyNot && throttles[said.Code]) {
			return said
		}
	case errors.Is(err, producer.ErrClosed):
		return wire.Unavailable("the proxy is shutting down: " + err.Error())
	case said != nil:
		return said
	}
	return &wire.Error{
		Code: codeInternal, Message: err.Error(), Status: http.StatusInternalServerError,
	}
}

// saidBehind returns the error with which the endpoint behind has answered, or nil.
func saidBehind(err error) *wire.Error {
	var record *producer.RecordError
	if errors.As(err, &record) {
		return &wire.Error{Code: record.Code, Message: record.Message}
	}
	var api smithy.APIError
	if !errors.As(err, &api) {
		return nil
	}
	said := &wire.Error{Code: api.ErrorCode(), Message: api.ErrorMessage()}
	var response *smithyhttp.ResponseError
	if errors.As(err, &response) {
		said.Status = response.HTTPStatusCode()
	}
	return said
}
