package awsclient

import (
	"errors"

	"github.com/aws/smithy-go"
)

// Throttled reports whether a call was refused because there were too many, or too much: it may
// be made again later.
func Throttled(err error) bool {
	var answer smithy.APIError
	if !errors.As(err, &answer) {
		return false
	}
	switch answer.ErrorCode() {
	case "ProvisionedThroughputExceededException", "LimitExceededException",
		"ThrottlingException", "RequestLimitExceeded", "KMSThrottlingException":
		return true
	}
	return false
}
