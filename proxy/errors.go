package proxy

import (
	"errors"
	"net/http"

	"github.com/runnel-stream/runnel/internal/awserr"
	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/producer"
)

// errFull: there was no room for a record within Config.PutWait.
var errFull = errors.New("the proxy holds as many records as it may: the stream takes them more " +
	"slowly than they come; the record was not taken, send it again later")

// answerTo returns what a client is told of a record that was not taken or not delivered, or of
// a call that the endpoint behind has refused. What the endpoint has said is passed on as it is.
func answerTo(err error) *wire.Error {
	var undelivered *producer.UndeliveredError
	said := saidBehind(err)
	switch {
	case errors.Is(err, errFull):
		return &wire.Error{Code: awserr.CodeThroughput, Message: err.Error()}
	case errors.Is(err, errBusy):
		return &wire.Error{Code: awserr.CodeLimit, Message: err.Error()}
	case errors.Is(err, producer.ErrInvalidPartitionKey),
		errors.Is(err, producer.ErrInvalidHashKey), errors.Is(err, producer.ErrTooLarge):
		return &wire.Error{Code: awserr.CodeValidation, Message: err.Error()}
	case errors.As(err, &undelivered):
		surelyNot := undelivered.Unknown == 0
		if said != nil && (errors.Is(err, producer.ErrRefused) ||
			surelyNot && isThrottle(said)) {
			return said
		}
	case errors.Is(err, producer.ErrClosed):
		return wire.Unavailable("the proxy is shutting down: " + err.Error())
	case said != nil:
		return said
	}
	return &wire.Error{
		Code: awserr.CodeInternal, Message: err.Error(), Status: http.StatusInternalServerError,
	}
}

// saidBehind returns the error with which the endpoint behind has answered, or nil.
func saidBehind(err error) *wire.Error {
	var record *producer.RecordError
	if errors.As(err, &record) {
		return &wire.Error{Code: record.Code, Message: record.Message}
	}
	if code := awserr.Code(err); code != "" {
		return &wire.Error{Code: code, Message: awserr.Message(err), Status: awserr.Status(err)}
	}
	return nil
}

// isThrottle reports whether an answer says that a limit of the stream kept the record out of it.
func isThrottle(said *wire.Error) bool {
	class, _ := awserr.Kinesis.OfCode(said.Code, said.Message)
	return class == awserr.Throttled
}
