package consumer

import (
	"time"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/smithy-go/middleware"
)

// streamTime returns bounds of the time by the stream's own clock, which stamps arrival times, at
// some moment of a call that lasted from sent to got by our clock. It uses our clock unless the
// answer's Date header, which has whole seconds, contradicts it.
func streamTime(sent, got time.Time, answer middleware.Metadata) (earliest, latest time.Time) {
	date, ok := awsmiddleware.GetServerTime(answer)
	if !ok {
		return sent, got
	}
	earliest, latest = sent, got
	if date.After(got) || !sent.Before(date.Add(time.Second)) {
		earliest = date
	}
	if end := date.Add(time.Second); end.After(latest) {
		latest = end
	}
	return earliest, latest
}
