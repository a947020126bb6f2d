package awsclient

import (
	"time"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/smithy-go/middleware"
)

// AnswerTime bounds the time, by the server's clock, at which it made the answer to a call that was
// made from sent to got by ours. Where there is a Date header, our own clock has no part in it but
// for the call's duration.
func AnswerTime(sent, got time.Time, answer middleware.Metadata) (earliest, latest time.Time) {
	date, ok := awsmiddleware.GetServerTime(answer)
	if !ok {
		return sent, got
	}
	return date.Add(-got.Sub(sent)), date.Add(time.Second) // Date has whole seconds
}

// Date returns the time of an answer by the server's clock: the moment at which the server made it,
// in whole seconds. Without a Date header it returns sent, the time of the call by our clock.
func Date(sent time.Time, answer middleware.Metadata) time.Time {
	if date, ok := awsmiddleware.GetServerTime(answer); ok {
		return date
	}
	return sent
}
