package proxy

import (
	"errors"
	"net/http"

	"github.com/runnel-stream/runnel/internal/awserr"
	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/producer"
)

// errFull: a record found no room in the producer's buffer within Config.PutWait.
var errFull = errors.New("the proxy's buffer for the stream is full, since records come faster " +
	"than the stream takes them; the record was not taken, send it again later")

// errorOf returns the answer for a record that was not taken or not delivered, or for a call that
// upstream has refused. An error of upstream is passed on unchanged if it says for certain that the
// record was not stored.
func errorOf(err error) *wire.Error {
	var undelivered *producer.UndeliveredError
	upstream := upstreamError(err)
	switch {
	case errors.Is(err, errFull):
		return &wire.Error{Code: awserr.CodeThroughput, Message: err.Error()}
	case errors.Is(err, errBusy):
		return &wire.Error{Code: awserr.CodeLimit, Message: err.Error()}
	case errors.Is(err, producer.ErrInvalidPartitionKey),
		errors.Is(err, producer.ErrInvalidHashKey), errors.Is(err, producer.ErrTooLarge):
		return &wire.Error{Code: awserr.CodeValidation, Message: err.Error()}
	case errors.As(err, &undelivered):
		notStored := undelivered.Unknown == 0
		if upstream != nil && (errors.Is(err, producer.ErrRefused) ||
			notStored && isThrottle(upstream)) {
			return upstream
		}
	case errors.Is(err, producer.ErrClosed):
		return wire.Unavailable("the proxy is shutting down: " + err.Error())
	case upstream != nil:
		return upstream
	}
	return &wire.Error{
		Code: awserr.CodeInternal, Message: err.Error(), Status: http.StatusInternalServerError,
	}
}

// upstreamError returns the error that upstream has answered with; nil if err is no answer.
func upstreamError(err error) *wire.Error {
	var record *producer.RecordError
	if errors.As(err, &record) {
		return &wire.Error{Code: record.Code, Message: record.Message}
	}
	if code := awserr.Code(err); code != "" {
		return &wire.Error{Code: code, Message: awserr.Message(err), Status: awserr.Status(err)}
	}
	return nil
}

// isThrottle reports whether an answer refuses a record because of a limit of the stream.
func isThrottle(answer *wire.Error) bool {
	class, _ := awserr.Kinesis.OfCode(answer.Code, answer.Message)
	return class == awserr.Throttled
}
