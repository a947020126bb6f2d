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
