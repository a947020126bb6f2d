package fanout

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
)

// consumerName is the pattern of a consumer's name (service model, ConsumerName).
var consumerName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,128}$`)
})

// consumerARN is the form of a consumer's ARN; the groups are the stream's ARN and name.
var consumerARN = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(arn:[^:]+:kinesis:[^:]*:[^:]*:stream/([a-zA-Z0-9_.-]+))` +
		`/consumer/[a-zA-Z0-9_.-]+:[0-9]+$`)
})

func isARN(consumer string) bool { return strings.HasPrefix(consumer, "arn:") }

// Check returns an error unless consumer is a name, or an ARN of a consumer of the stream with this
// name.
func Check(consumer, stream string) error {
	if !isARN(consumer) {
		if !consumerName().MatchString(consumer) {
			return fmt.Errorf("%q is not the name of a consumer: want 1 to 128 letters, digits, "+
				"or any of _ . -", consumer)
		}
		return nil
	}
	parts := consumerARN().FindStringSubmatch(consumer)
	switch {
	case parts == nil:
		return fmt.Errorf("%q is not the ARN of a consumer: want "+
			"arn:aws:kinesis:REGION:ACCOUNT:stream/STREAM/consumer/NAME:TIME", consumer)
	case parts[2] != stream:
		return fmt.Errorf("%s is a consumer of the stream %s: want a consumer of %s", consumer,
			parts[2], stream)
	}
	return nil
}

// CheckStream is Check with the stream's ARN, which also names the account and the region.
func CheckStream(consumer, streamARN string) error {
	parts := consumerARN().FindStringSubmatch(consumer)
	if isARN(consumer) && (parts == nil || parts[1] != streamARN) {
		return fmt.Errorf("%w: %s is not a consumer of %s: name one of this stream",
			ErrOtherStream, consumer, streamARN)
	}
	return nil
}
